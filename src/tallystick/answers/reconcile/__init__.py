"""Which way of counting makes a claimed count true."""
