"""A checkpoint as a ledger, by the headers of its files and the config next to them."""
