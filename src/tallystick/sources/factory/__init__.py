"""A factory of the user's own as a ledger: the module that it builds, at one point or over a range of its arguments."""
