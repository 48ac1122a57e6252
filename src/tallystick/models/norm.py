"""Norms: a token's channels brought to one scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.models.config import DecoderConfig


class RMSNorm(nn.Module):
    """Divides by the root of the mean square (Zhang and Sennrich 2019), in float32.

    With `offset`, the stored scale is what is added to it: Gemma keeps its scales around zero, not one. What comes out
    is rounded to the dtype of what went in before it is scaled, or `rounds_last`.
    """

    def __init__(
        self, width: int, *, eps: float, scale: bool = True, offset: float = 0.0, rounds_last: bool = False
    ) -> None:
        super().__init__()
        self.eps, self.offset, self.rounds_last = eps, offset, rounds_last
        self.weight = nn.Parameter(torch.empty(width)) if scale else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The scale that changes nothing."""
        if self.weight is not None:
            nn.init.constant_(self.weight, 1 - self.offset)

    def forward(self, x: Tensor) -> Tensor:
        full = F.rms_norm(x.float(), x.shape[-1:], eps=self.eps)
        if self.weight is None:
            return full.to(x.dtype)
        if self.rounds_last:
            return (full * (self.offset + self.weight.float())).to(x.dtype)
        return (self.offset + self.weight if self.offset else self.weight) * full.to(x.dtype)


def norm(c: DecoderConfig, width: int | None = None) -> nn.Module:
    """The norm of a decoder, over its own width or another."""
    width = width or c.width
    if c.norm == "layer":
        return nn.LayerNorm(width, eps=c.norm_eps, elementwise_affine=c.norm_scale, bias=c.norm_bias)
    return RMSNorm(width, eps=c.norm_eps, scale=c.norm_scale, offset=c.norm_offset, rounds_last=c.norm_rounds_last)
