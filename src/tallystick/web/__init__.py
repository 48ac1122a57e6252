"""The page to explore in: a server on this machine that answers as the command line does. It computes nothing."""
