"""The command line: it parses, asks and shows. It computes nothing."""
