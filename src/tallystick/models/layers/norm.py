"""Norm layers: RMSNorm, and the choice between it and LayerNorm."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.models.config import DecoderConfig


class RMSNorm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019), computed in float32.

    `offset` is added to the stored scale: Gemma stores scales around zero, not one.
    With `rounds_last` the scaling is done in float32 and the result rounded to the input's dtype.
    Otherwise the normalised values are rounded first and scaled afterwards.
    """

    def __init__(
        self, width: int, *, eps: float, scale: bool = True, offset: float = 0.0, rounds_last: bool = False
    ) -> None:
        super().__init__()
        self.eps, self.offset, self.rounds_last = eps, offset, rounds_last
        self.weight = nn.Parameter(torch.empty(width)) if scale else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one, the offset included."""
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
    """Return the norm of a decoder, over its width or the given one."""
    width = width or c.width
    if c.norm == "layer":
        return nn.LayerNorm(width, eps=c.norm_eps, elementwise_affine=c.norm_scale, bias=c.norm_bias)
    return RMSNorm(width, eps=c.norm_eps, scale=c.norm_scale, offset=c.norm_offset, rounds_last=c.norm_rounds_last)
