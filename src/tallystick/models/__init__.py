"""PyTorch models whose parameters the ledger explains. Importing this room imports torch; nothing else here does."""
