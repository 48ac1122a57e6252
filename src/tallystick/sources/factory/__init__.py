"""Turn a user's factory function into a ledger, for one or many values of its arguments."""
