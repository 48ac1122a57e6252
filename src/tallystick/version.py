"""The version, for the command line and the User-Agent of requests."""

__version__ = "0.1.0"
