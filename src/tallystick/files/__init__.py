"""Where bytes are: on this machine, in an archive, at an address."""
