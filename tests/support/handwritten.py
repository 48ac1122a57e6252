"""Models that are no package's, as they are taught, in skeleton: nanoGPT's, and the GPT and the
Llama of the book.

They run as published, written here from that and not from our blueprints, so that what autograd
keeps of them can be measured. Names are shorter where nothing depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.models.decoder import Decoder


class Learner(nn.Module):
    """A model that takes labels and gives a loss, in float32 and of all tokens, as those of
    transformers do.
    """

    def __init__(self, model: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, labels: Tensor, use_cache: bool = False) -> Any:
        logits = self.model(ids)
        after = F.pad(labels, (0, 1), value=-100)[:, 1:].flatten()
        return logits, F.cross_entropy(logits.float().flatten(0, 1), after, ignore_index=-100)


def split(x: Tensor, heads: int) -> Tensor:
    """(B, T, heads · h) -> (B, heads, T, h)."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """(B, heads, T, h) -> (B, T, heads · h)."""
    return x.transpose(1, 2).contiguous().flatten(2)


# -- nanoGPT --------------------------------------------------------------------------------------


class NanoBlock(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split(one, self.heads) for one in self.c_attn(self.ln_1(x)).split(x.shape[-1], dim=2))
        y = joined(F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True))
        x = x + F.dropout(self.c_proj(y), self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.ln_2(x)))), self.dropout)


class NanoGPT(nn.Module):
    def __init__(
        self,
        block_size: int,
        vocab_size: int,
        n_layer: int,
        n_head: int,
        n_embd: int,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(NanoBlock(n_embd, n_head, bias, dropout) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd, bias=bias)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = F.dropout(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])), self.dropout)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


# -- the book's GPT -------------------------------------------------------------------------------


class BookNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        mean, var = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + 1e-5)) + self.shift


def book_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh((2.0 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3))))


class BookBlock(nn.Module):
    def __init__(self, width: int, heads: int, context: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.register_buffer("mask", torch.triu(torch.ones(context, context), diagonal=1))
        self.query, self.key, self.value = (nn.Linear(width, width, bias=bias) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = BookNorm(width), BookNorm(width)

    def attend(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        k, q, v = (split(one(x), self.heads) for one in (self.key, self.query, self.value))
        scores = q @ k.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:tokens, :tokens], -torch.inf)
        weights = F.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1), self.dropout)
        return self.out(joined(weights @ v))

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(self.attend(self.norm1(x)), self.dropout) + x
        return F.dropout(self.down(book_gelu(self.up(self.norm2(x)))), self.dropout) + x


class BookGPT(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        emb_dim: int,
        n_heads: int,
        n_layers: int,
        drop_rate: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.dropout = drop_rate
        self.tok_emb, self.pos_emb = nn.Embedding(vocab_size, emb_dim), nn.Embedding(context_length, emb_dim)
        self.blocks = nn.Sequential(
            *(BookBlock(emb_dim, n_heads, context_length, drop_rate, qkv_bias) for _ in range(n_layers))
        )
        self.norm, self.head = BookNorm(emb_dim), nn.Linear(emb_dim, vocab_size, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = F.dropout(self.tok_emb(ids) + self.pos_emb(torch.arange(ids.shape[1])), self.dropout)
        return self.head(self.norm(self.blocks(x)))


# -- its Llama and its Qwen3 ----------------------------------------------------------------------


class BookRMSNorm(nn.Module):
    def __init__(self, width: int, wide: bool) -> None:
        super().__init__()
        self.scale, self.wide = nn.Parameter(torch.ones(width)), wide

    def forward(self, x: Tensor) -> Tensor:
        given = x.float() if self.wide else x
        return (given * torch.rsqrt(given.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.scale).to(x.dtype)


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, size: int, inner: int, qk_norm: bool) -> None:
        super().__init__()
        self.heads, self.groups = heads, groups
        self.query = nn.Linear(width, heads * size, bias=False)
        self.key, self.value = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
        self.out = nn.Linear(heads * size, width, bias=False)
        self.fc1, self.fc2 = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.fc3 = nn.Linear(inner, width, bias=False)
        self.norm1, self.norm2 = BookRMSNorm(width, qk_norm), BookRMSNorm(width, qk_norm)
        self.q_norm = self.k_norm = None
        if qk_norm:
            self.q_norm, self.k_norm = BookRMSNorm(size, True), BookRMSNorm(size, True)

    def attend(self, x: Tensor, mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = split(self.query(x), self.heads), split(self.key(x), self.groups), split(self.value(x), self.groups)
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k, v = (one.repeat_interleave(self.heads // self.groups, dim=1) for one in (k, v))
        scores = (q @ k.transpose(2, 3)).masked_fill_(mask, -torch.inf)
        return self.out(joined(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1) @ v))

    def forward(self, x: Tensor, mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = self.attend(self.norm1(x), mask, cos, sin) + x
        y = self.norm2(x)
        return self.fc3(F.silu(self.fc1(y)) * self.fc2(y)) + x


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half, tokens = x.shape[-1] // 2, x.shape[2]
    rotated = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos[:tokens] + rotated * sin[:tokens]).to(x.dtype)


class BookLlama(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        emb_dim: int,
        n_heads: int,
        n_layers: int,
        hidden_dim: int,
        n_kv_groups: int | None = None,
        head_dim: int | None = None,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        size = head_dim or emb_dim // n_heads
        self.tok_emb = nn.Embedding(vocab_size, emb_dim)
        self.blocks = nn.ModuleList(
            LlamaBlock(emb_dim, n_heads, n_kv_groups or n_heads, size, hidden_dim, qk_norm) for _ in range(n_layers)
        )
        self.norm, self.head = BookRMSNorm(emb_dim, qk_norm), nn.Linear(emb_dim, vocab_size, bias=False)
        angles = torch.outer(torch.arange(context_length), 1e4 ** -(torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x, tokens = self.tok_emb(ids), ids.shape[1]
        mask = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), diagonal=1)
        for block in self.blocks:
            x = block(x, mask, self.cos, self.sin)
        return self.head(self.norm(x))


MODELS: dict[str, Callable[..., nn.Module]] = {
    "nanogpt": NanoGPT,
    "book_gpt": BookGPT,
    "book_llama": BookLlama,
    "palm": lambda **values: Decoder.of({"model_type": "palm", **values}),
}


def learner(model_type: str, **values: Any) -> nn.Module:
    """The model of a type, in training."""
    return Learner(MODELS[model_type](**values)).train()
