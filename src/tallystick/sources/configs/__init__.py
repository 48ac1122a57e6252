"""A config as a ledger: which family reads it, and what its keys say."""
