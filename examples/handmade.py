"""A model that no config describes. Find its formula with `tallystick formula handmade:build --vary
dim=64:512 n_layers=1:4`.
"""

import torch
from torch import nn


class Block(nn.Module):
    """A gated MLP whose inner width is two thirds of four times the outer one, rounded up to a
    multiple of 256.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        inner = 256 * -(-8 * dim // (3 * 256))
        self.norm = nn.RMSNorm(dim)
        self.gate_proj = nn.Linear(dim, inner, bias=False)
        self.up_proj = nn.Linear(dim, inner, bias=False)
        self.down_proj = nn.Linear(inner, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(h)) * self.up_proj(h))


def build(dim: int = 512, n_layers: int = 4) -> nn.Module:
    """Some blocks."""
    return nn.Sequential(*(Block(dim) for _ in range(n_layers)))
