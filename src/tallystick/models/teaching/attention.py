"""Causal self-attention with one head and with several, and rotary positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tallystick.errors import BadInput


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return causal attention: means of the values up to each position, weighted by the scores.

    Args:
        query: (..., T, h).
        key: (..., T, h).
        value: (..., T, h).

    Returns:
        (..., T, h).

    >>> x = torch.tensor([[1.0], [3.0]])  # two tokens of width 1
    >>> attend(torch.zeros(2, 1), x, x)  # equal scores: the mean of what has come
    tensor([[1.],
            [2.]])
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., T, T)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1) @ value


def rotated(x: Tensor) -> Tensor:
    """Rotate queries or keys by their positions: RoPE has no parameters.

    Args:
        x: (..., T, h), with an even h.

    Returns:
        (..., T, h).

    >>> rotated(torch.ones(1, 4))  # the first token is not rotated
    tensor([[1., 1., 1., 1.]])
    """
    length, size = x.shape[-2:]
    frequencies = 10_000.0 ** -torch.arange(0, 1, 2 / size, device=x.device)[: size // 2]  # (h / 2)
    angles = torch.arange(length, device=x.device)[:, None] * frequencies  # (T, h / 2)
    first, second = x.chunk(2, dim=-1)  # feature i is paired with feature i + h / 2
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class SingleHeadAttention(nn.Module):
    """One head of causal self-attention without biases.

    Args:
        d_model: width of the model, d.
        d_head: size of the head, h.

    >>> sum(p.numel() for p in SingleHeadAttention(8, 4).parameters())  # 3 * 8 * 4
    96
    """

    query: nn.Linear  # weight (h, d)
    key: nn.Linear  # weight (h, d)
    value: nn.Linear  # weight (h, d)

    def __init__(self, d_model: int, d_head: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_head, bias=False)
        self.key = nn.Linear(d_model, d_head, bias=False)
        self.value = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return attend(self.query(x), self.key(x), self.value(x))  # (B, T, d) -> (B, T, h)


class MultiHeadAttention(nn.Module):
    """`n_heads` heads and an output projection, without biases.

    Without `head_dim` the heads share the width: their number changes no shape, and not the count.

    Args:
        d_model: width of the model, d.
        n_heads: heads, H.
        head_dim: size of a head, h; None is ``d_model / n_heads``.
        rotary: whether queries and keys are rotated by their positions.

    Raises:
        BadInput: if the heads do not divide the width, and `head_dim` is None.

    >>> sum(p.numel() for p in MultiHeadAttention(8, 2).parameters())  # 4 * 8 * 8
    256
    >>> sum(p.numel() for p in MultiHeadAttention(5, 2, 256).parameters())  # 4 * 5 * (2 * 256)
    10240
    """

    n_heads: int
    rotary: bool
    query: nn.Linear  # weight (H * h, d)
    key: nn.Linear  # weight (H * h, d)
    value: nn.Linear  # weight (H * h, d)
    output: nn.Linear  # weight (d, H * h)

    def __init__(self, d_model: int, n_heads: int, head_dim: int | None = None, *, rotary: bool = False) -> None:
        super().__init__()
        if head_dim is None and d_model % n_heads:
            raise BadInput(f"d_model = {d_model} is not divisible by n_heads = {n_heads}", code="indivisible")
        size = head_dim or d_model // n_heads
        if rotary and size % 2:
            named = "d_model / n_heads" if head_dim is None else "head_dim"
            raise BadInput(f"{named} = {size} is odd: rotary embedding needs an even head size", code="indivisible")
        self.n_heads, self.rotary = n_heads, rotary
        self.query = nn.Linear(d_model, n_heads * size, bias=False)
        self.key = nn.Linear(d_model, n_heads * size, bias=False)
        self.value = nn.Linear(d_model, n_heads * size, bias=False)
        self.output = nn.Linear(n_heads * size, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        def heads(projected: Tensor) -> Tensor:
            return projected.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, H * h) -> (B, H, T, h)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        if self.rotary:
            query, key = rotated(query), rotated(key)
        return self.output(attend(query, key, value).transpose(1, 2).flatten(2))  # (B, H, T, h) -> (B, T, d)
