"""The web page to explore a model: a local server with the command line's answers."""
