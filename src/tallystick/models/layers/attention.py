"""Causal self-attention: multi-head, grouped-query, sliding-window or with capped scores.

Letters in shapes: B sequences of T tokens, S key positions, d the width of the model,
H query heads and K key-value heads, h channels per head.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.models.cache import LayerCache
from tallystick.models.config import DecoderConfig
from tallystick.models.layers.linear import Linear
from tallystick.models.layers.norm import RMSNorm, norm
from tallystick.models.layers.rotary import Rotation, rotate


class Sight(NamedTuple):
    """What each query may attend to: a mask, the causal pattern, or every key.

    The mask is boolean, (B or 1, 1, T, S). Without a mask, `causal` hides later keys.
    """

    mask: Tensor | None
    causal: bool = False


def sight(positions: Tensor, seen: Tensor, window: int | None, padding: Tensor | None, *, gaps: bool = False) -> Sight:
    """Return which of S keys each of T queries may attend to.

    Args:
        positions: (T,), positions of the queries, consecutive.
        seen: (S,), positions of the keys, in their order.
        window: sliding window in tokens, the query's own included; None: unlimited.
        padding: (B,), the number of padding tokens at the left of each sequence.
        gaps: whether some key slots may be empty; their positions are below 0.
    """
    count, start = len(positions), len(seen) - len(positions)
    if padding is None and not gaps:
        if count == 1:  # a single query attends to every key
            return Sight(None)
        if start == 0 and (window is None or count <= window):
            return Sight(None, causal=True)
    queries, keys = positions[:, None], seen[None, :]  # (T, 1), (1, S)
    mask = keys <= queries
    if window is not None:
        mask = mask & (keys > queries - window)
    if gaps:
        mask = mask & (keys >= 0)
    mask = mask[None, None]  # (1, 1, T, S)
    if padding is not None:  # a padding token attends to itself: a softmax over no keys is NaN
        mask = mask & ((keys >= padding[:, None, None, None]) | (keys == queries))
    return Sight(mask)


class Attention(nn.Module):
    """Self-attention; grouped-query if there are fewer key-value heads (Ainslie et al. 2023)."""

    def __init__(self, c: DecoderConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_size = c.heads, c.kv_count, c.head_size
        queries, keys = c.heads * c.head_size, c.kv_count * c.head_size
        self.q_proj = Linear(c.width, queries, bias=c.qkv_bias)
        self.k_proj = Linear(c.width, keys, bias=c.qkv_bias)
        self.v_proj = Linear(c.width, keys, bias=c.qkv_bias)
        self.o_proj = Linear(queries, c.width, bias=c.output_bias)
        self.qk_norm = c.qk_norm
        if c.qk_norm == "turned":
            self.q_norm = self.k_norm = RMSNorm(c.head_size, eps=c.norm_eps, scale=False)
        elif c.qk_norm is not None:
            self.q_norm = norm(c, queries if c.qk_norm == "all" else c.head_size)
            self.k_norm = norm(c, keys if c.qk_norm == "all" else c.head_size)
        self.scale = c.head_size**-0.5 if c.attention_scale is None else c.attention_scale
        self.cap, self.dropout = c.attention_cap, c.attention_dropout

    def forward(
        self, x: Tensor, turn: Rotation | None, sees: Sight, cache: LayerCache | None = None, start: int | Tensor = 0
    ) -> Tensor:
        """Attend within each sequence: (B, T, d) -> (B, T, d).

        Args:
            x: hidden states, (B, T, d).
            turn: the rotation of queries and keys; None without RoPE.
            sees: which keys each query may attend to.
            cache: the layer's KV cache; the new keys and values are appended.
            start: position of the first of the T tokens in the cache.
        """
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, T, d) -> (B, T, H or K times h)
        if self.qk_norm == "all":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (one.unflatten(-1, (-1, self.head_size)).transpose(1, 2) for one in (q, k, v))  # (B, H or K, T, h)
        if self.qk_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if turn is not None:
            q, k = rotate(q, turn), rotate(k, turn)
        if self.qk_norm == "turned":
            q, k = self.q_norm(q), self.k_norm(k)
        if cache is not None:
            k, v = cache.extend(start, k, v)
        y = self.attend(q, k, v, sees)
        return self.o_proj(y.transpose(1, 2).flatten(2))  # (B, H, T, h) -> (B, T, d)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, sees: Sight) -> Tensor:
        """Attend with SDPA, or with capped scores.

        Args:
            q: queries, (B, H, T, h).
            k: keys, (B, K, S, h).
            v: values, (B, K, S, h).
            sees: which keys each query may attend to.

        Returns:
            (B, H, T, h).
        """
        dropout = self.dropout if self.training else 0.0
        if self.cap is not None:
            return _capped(q, k, v, sees, scale=self.scale, cap=self.cap, dropout=dropout)
        batch, heads, count, size = q.shape
        groups = heads // k.shape[1]
        if count == 1 and groups > 1:  # one token: the queries of a group become the queries of one head
            y = F.scaled_dot_product_attention(
                q.view(batch, -1, groups, size), k, v, attn_mask=sees.mask, dropout_p=dropout, scale=self.scale
            )
            return y.reshape(batch, heads, 1, size)
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=sees.mask,
            dropout_p=dropout,
            is_causal=sees.causal,
            scale=self.scale,
            enable_gqa=groups > 1,
        )


def _capped(q: Tensor, k: Tensor, v: Tensor, sees: Sight, *, scale: float, cap: float, dropout: float) -> Tensor:
    """Attend with capped scores in plain PyTorch: SDPA kernels cannot cap scores (Gemma 2)."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.mT * scale  # (B, H, T, S)
    scores = torch.tanh(scores / cap) * cap
    if sees.causal:
        above = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(above, -math.inf)
    elif sees.mask is not None:
        scores = scores.masked_fill(~sees.mask, -math.inf)
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return F.dropout(weights, dropout) @ v
