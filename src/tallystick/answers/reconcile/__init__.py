"""Which counting convention makes a claimed count true."""
