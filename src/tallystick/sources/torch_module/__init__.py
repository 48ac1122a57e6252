"""A live PyTorch module as a ledger: its tensors, their storages, its declared ties."""
