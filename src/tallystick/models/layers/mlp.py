"""MLPs: plain, gated, or a mixture of experts with a router."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.errors import BadInput, nearest, quoted
from tallystick.models import config
from tallystick.models.config import DecoderConfig
from tallystick.models.layers.linear import Linear


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def _relu_squared(x: Tensor) -> Tensor:
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # by the name in Hugging Face configs
    "gelu": F.gelu,
    "gelu_fast": _gelu_tanh,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "relu2": _relu_squared,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


def activation(word: str) -> Callable[[Tensor], Tensor]:
    """Return the activation function with this name in Hugging Face configs.

    Raises:
        BadInput: if the name is unknown.
    """
    if word not in ACTIVATIONS:
        raise BadInput(f"activation {quoted(word)} is not known{nearest(word, list(ACTIVATIONS))}", code="unsupported")
    return ACTIVATIONS[word]


class GroupedProduct(Protocol):
    """A grouped matrix product: rows (N, in), matrices (E, in, out); `offs` is each group's end."""

    def __call__(self, rows: Tensor, stack: Tensor, /, *, offs: Tensor) -> Tensor: ...


def one_by_one(rows: Tensor, stack: Tensor, /, *, offs: Tensor) -> Tensor:
    """Compute `grouped_mm` with one product per matrix; waits for the device to return `offs`."""
    lengths = offs.diff(prepend=offs.new_zeros(1)).tolist()
    groups = zip(rows.split(lengths), stack.unbind(), strict=True)
    return torch.cat([rows.new_empty(0, stack.shape[-1]), *(group @ matrix for group, matrix in groups if len(group))])


class MLP(nn.Module):
    """Up projection, activation, down projection.

    If gated, the activation of a gate projection scales the up projection (Shazeer 2020).
    """

    def __init__(self, c: DecoderConfig) -> None:
        super().__init__()
        self.gate_proj = Linear(c.width, c.inner, bias=c.mlp_bias) if c.gated else None
        self.up_proj = Linear(c.width, c.inner, bias=c.mlp_bias)
        self.down_proj = Linear(c.inner, c.width, bias=c.mlp_bias)
        self.activation = activation(c.activation)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up_proj(x)  # (B, T, d) -> (B, T, inner)
        up = self.activation(up) if self.gate_proj is None else self.activation(self.gate_proj(x)) * up
        return self.down_proj(up)


class SparseMLP(nn.Module):
    """A router sends each token to a few experts and sums their outputs (Shazeer et al. 2017)."""

    def __init__(self, c: DecoderConfig, experts: config.Experts) -> None:
        super().__init__()
        self.used, self.normalised = experts.used, experts.normalised
        self.router = Linear(c.width, experts.count, bias=False)
        self.experts = Experts(c.width, experts, activation(c.activation))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])  # (N, d)
        scores = self.router(tokens).float().softmax(-1)
        weights, chosen = scores.topk(self.used, dim=-1)  # (N, used)
        if self.normalised:
            weights = weights / weights.sum(-1, keepdim=True)
        return self.experts(tokens, weights.to(x.dtype), chosen).view_as(x)


class Experts(nn.Module):
    """Gated MLPs with stacked weights: one tensor (E, …) per projection.

    `active` is the share of the experts that one token uses.
    """

    def __init__(self, width: int, experts: config.Experts, act: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        count, inner = experts.count, experts.inner
        self.active = Fraction(experts.used, count)
        self.gate_proj = nn.Parameter(torch.empty(count, inner, width))
        self.up_proj = nn.Parameter(torch.empty(count, inner, width))
        self.down_proj = nn.Parameter(torch.empty(count, width, inner))
        self.activation = act

    def forward(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Run each token through its experts and sum their weighted outputs.

        Args:
            tokens: hidden states, (N, d).
            weights: router weights of the chosen experts, (N, used).
            chosen: indexes of the chosen experts, (N, used).

        Returns:
            (N, d).
        """
        device = tokens.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tokens.dtype
        if product := self._product(dtype):  # autocast does not cover grouped products
            gate, up, down = (stack.to(dtype) for stack in (self.gate_proj, self.up_proj, self.down_proj))
            return self._grouped(product, tokens.to(dtype), weights, chosen, gate, up, down).to(tokens.dtype)
        return self._each(tokens, weights, chosen)

    def _product(self, dtype: torch.dtype) -> GroupedProduct | None:
        """Return the grouped product for tokens sorted by expert; None if there is none.

        `grouped_mm` needs rows whose size is a multiple of 16 bytes, and bfloat16 when compiled.
        Older PyTorch versions do not have it.
        """
        compiling = torch.compiler.is_compiling()
        if not hasattr(F, "grouped_mm"):
            return None if compiling else one_by_one
        known = (torch.bfloat16,) if compiling else (torch.bfloat16, torch.float16, torch.float32)
        aligned = not any(length * dtype.itemsize % 16 for length in self.gate_proj.shape[1:])
        return F.grouped_mm if dtype in known and aligned else None

    def _grouped(
        self,
        product: GroupedProduct,
        tokens: Tensor,
        weights: Tensor,
        chosen: Tensor,
        gate: Tensor,
        up: Tensor,
        down: Tensor,
    ) -> Tensor:
        """Sort the tokens by expert and multiply each group by its expert's matrices."""
        used = chosen.shape[1]
        order = chosen.flatten().argsort(stable=True)  # (N · used,)
        ends = torch.bincount(chosen.flatten(), minlength=len(gate)).cumsum(0).to(torch.int32)
        mine = tokens[order // used]
        inner = self.activation(product(mine, gate.mT, offs=ends)) * product(mine, up.mT, offs=ends)
        said = product(inner, down.mT, offs=ends) * weights.flatten()[order, None].to(tokens.dtype)
        return torch.zeros_like(tokens).index_add(0, order // used, said)

    def _each(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Run every expert on every token: the fallback without grouping; most get weight 0."""
        out = torch.zeros_like(tokens)
        for expert in range(len(self.gate_proj)):
            inner = self.activation(F.linear(tokens, self.gate_proj[expert])) * F.linear(tokens, self.up_proj[expert])
            share = torch.where(chosen == expert, weights, 0).sum(-1, keepdim=True)
            out = out + F.linear(inner, self.down_proj[expert]) * share
        return out
