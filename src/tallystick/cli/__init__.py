"""The command line: parses options, asks for answers and prints them. It computes nothing."""
