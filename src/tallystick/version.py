"""The version, for the command line and for what the hosts of files are sent."""

__version__ = "0.1.0"
