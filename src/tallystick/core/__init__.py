"""What all rooms share: sizes that remember where they come from, tensors, the ledger, and the modules of an architecture."""
