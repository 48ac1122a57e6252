"""Turn a live PyTorch module into a ledger: its tensors, storages and declared ties."""
