"""PyTorch models whose parameters the ledger explains. Its files import torch; importing tallystick does not."""
