"""Turn a checkpoint into a ledger, from file headers and the config next to them."""
