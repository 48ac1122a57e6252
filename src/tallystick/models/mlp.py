"""What each position goes through on its own: a plain MLP, a gated one, or a few of many experts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.errors import BadInput, nearest, quoted
from tallystick.models import config
from tallystick.models.config import DecoderConfig


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def _relu_squared(x: Tensor) -> Tensor:
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # by Hugging Face's words
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
    """The function of a word of Hugging Face's configs."""
    if word not in ACTIVATIONS:
        raise BadInput(f"activation {quoted(word)} is not known{nearest(word, list(ACTIVATIONS))}")
    return ACTIVATIONS[word]


class MLP(nn.Module):
    """Up, an activation, down; gated, the activation of a third projection scales the second (Shazeer 2020)."""

    def __init__(self, c: DecoderConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.width, c.inner, bias=c.mlp_bias) if c.gated else None
        self.up_proj = nn.Linear(c.width, c.inner, bias=c.mlp_bias)
        self.down_proj = nn.Linear(c.inner, c.width, bias=c.mlp_bias)
        self.activation = activation(c.activation)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up_proj(x)  # (B, T, d) -> (B, T, inner)
        up = self.activation(up) if self.gate_proj is None else self.activation(self.gate_proj(x)) * up
        return self.down_proj(up)


class SparseMLP(nn.Module):
    """A router sends each token through a few gated experts and adds up what they say (Shazeer et al. 2017).

    The experts are stacked: E of them in one tensor for each projection.
    """

    def __init__(self, c: DecoderConfig, experts: config.Experts) -> None:
        super().__init__()
        self.used, self.normalised = experts.used, experts.normalised
        self.router = nn.Linear(c.width, experts.count, bias=False)
        self.gate_proj = nn.Parameter(torch.empty(experts.count, experts.inner, c.width))
        self.up_proj = nn.Parameter(torch.empty(experts.count, experts.inner, c.width))
        self.down_proj = nn.Parameter(torch.empty(experts.count, c.width, experts.inner))
        self.activation = activation(c.activation)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])  # (N, d)
        scores = self.router(tokens).float().softmax(-1)
        weights, chosen = scores.topk(self.used, dim=-1)  # (N, used)
        if self.normalised:
            weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for expert in range(len(self.gate_proj)):
            token, place = (chosen == expert).nonzero(as_tuple=True)
            mine = tokens[token]
            inner = self.activation(F.linear(mine, self.gate_proj[expert])) * F.linear(mine, self.up_proj[expert])
            said = F.linear(inner, self.down_proj[expert]) * weights[token, place, None].to(x.dtype)
            out.index_add_(0, token, said)
        return out.view_as(x)
