"""Models that transformers lacks, in skeleton, in torch: what the ledger of such a type is compared
with.

Their constructors are written from the published state dicts and code, and not from our blueprints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Scale(nn.Module):
    """A hand-written norm, its tensors under the names that are given."""

    def __init__(self, width: int, *names: str) -> None:
        super().__init__()
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.empty(width)))


def _book_gpt(  # the book's keys
    vocab_size: int,
    context_length: int,
    emb_dim: int,
    n_heads: int,
    n_layers: int,
    drop_rate: float,
    qkv_bias: bool = False,
    tie_word_embeddings: bool = False,
) -> nn.Module:
    def block() -> nn.Module:
        att = nn.Module()
        for name in ("W_query", "W_key", "W_value"):
            setattr(att, name, nn.Linear(emb_dim, emb_dim, bias=qkv_bias))
        att.out_proj = nn.Linear(emb_dim, emb_dim)
        att.register_buffer("mask", torch.empty(context_length, context_length))
        ff = nn.Module()
        ff.layers = nn.Sequential(nn.Linear(emb_dim, 4 * emb_dim), nn.GELU(), nn.Linear(4 * emb_dim, emb_dim))
        norms = {name: Scale(emb_dim, "scale", "shift") for name in ("norm1", "norm2")}
        return nn.ModuleDict({"att": att, "ff": ff, **norms})

    model = nn.ModuleDict(
        {
            "tok_emb": nn.Embedding(vocab_size, emb_dim),
            "pos_emb": nn.Embedding(context_length, emb_dim),
            "trf_blocks": nn.Sequential(*(block() for _ in range(n_layers))),
            "final_norm": Scale(emb_dim, "scale", "shift"),
            "out_head": nn.Linear(emb_dim, vocab_size, bias=False),
        }
    )
    if tie_word_embeddings:
        model["out_head"].weight = model["tok_emb"].weight
    return model


def _book_llama(  # the book's keys
    vocab_size: int,
    context_length: int,
    emb_dim: int,
    n_heads: int,
    n_layers: int,
    hidden_dim: int,
    n_kv_groups: int | None = None,
    head_dim: int | None = None,
    qk_norm: bool = False,
    qkv_bias: bool = False,
    tie_word_embeddings: bool = False,
) -> nn.Module:
    size, scale = head_dim or emb_dim // n_heads, "scale" if qk_norm else "weight"

    def block() -> nn.Module:
        att = nn.ModuleDict({"W_query": nn.Linear(emb_dim, n_heads * size, bias=qkv_bias)})
        for name in ("W_key", "W_value"):
            att[name] = nn.Linear(emb_dim, (n_kv_groups or n_heads) * size, bias=qkv_bias)
        att["out_proj"] = nn.Linear(n_heads * size, emb_dim, bias=False)
        if qk_norm:
            att.update({"q_norm": Scale(size, scale), "k_norm": Scale(size, scale)})
        sides = {"fc1": (emb_dim, hidden_dim), "fc2": (emb_dim, hidden_dim), "fc3": (hidden_dim, emb_dim)}
        ff = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})
        return nn.ModuleDict({"att": att, "ff": ff, "norm1": Scale(emb_dim, scale), "norm2": Scale(emb_dim, scale)})

    model = nn.ModuleDict(
        {
            "tok_emb": nn.Embedding(vocab_size, emb_dim),
            "trf_blocks": nn.ModuleList(block() for _ in range(n_layers)),
            "final_norm": Scale(emb_dim, scale),
            "out_head": nn.Linear(emb_dim, vocab_size, bias=False),
        }
    )
    if tie_word_embeddings:
        model["out_head"].weight = model["tok_emb"].weight
    return model


def _nanogpt(  # nanoGPT's keys
    block_size: int = 1024,
    vocab_size: int = 50304,
    n_layer: int = 12,
    n_head: int = 12,
    n_embd: int = 768,
    bias: bool = True,
    tie_word_embeddings: bool = True,
) -> nn.Module:
    def linear(inputs: int, outputs: int) -> nn.Module:
        return nn.Linear(inputs, outputs, bias=bias)

    def block() -> nn.Module:
        attn = nn.ModuleDict({"c_attn": linear(n_embd, 3 * n_embd), "c_proj": linear(n_embd, n_embd)})
        mlp = nn.ModuleDict({"c_fc": linear(n_embd, 4 * n_embd), "c_proj": linear(4 * n_embd, n_embd)})
        norms = {name: nn.LayerNorm(n_embd, bias=bias) for name in ("ln_1", "ln_2")}
        return nn.ModuleDict({"attn": attn, "mlp": mlp, **norms})

    transformer = nn.ModuleDict(
        {
            "wte": nn.Embedding(vocab_size, n_embd),
            "wpe": nn.Embedding(block_size, n_embd),
            "h": nn.ModuleList(block() for _ in range(n_layer)),
            "ln_f": nn.LayerNorm(n_embd, bias=bias),
        }
    )
    model = nn.ModuleDict({"transformer": transformer, "lm_head": nn.Linear(n_embd, vocab_size, bias=False)})
    if tie_word_embeddings:
        transformer["wte"].weight = model["lm_head"].weight
    return model


def _exaone(  # LG's keys; what has no bias in its modeling_exaone.py has none here
    vocab_size: int = 102400,
    hidden_size: int = 2048,
    num_layers: int = 32,
    num_attention_heads: int = 32,
    num_key_value_heads: int | None = None,
    intermediate_size: int | None = None,
    tie_word_embeddings: bool = True,
    num_hidden_layers: int | None = None,  # `attribute_map` makes it the other name of num_layers
    **_: Any,
) -> nn.Module:
    d, inner = hidden_size, intermediate_size or 4 * hidden_size
    keys = (num_key_value_heads or num_attention_heads) * (d // num_attention_heads)

    def block() -> nn.Module:
        sides = {"q_proj": (d, d), "k_proj": (d, keys), "v_proj": (d, keys), "out_proj": (d, d)}
        attention = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})
        sides = {"c_fc_0": (d, inner), "c_fc_1": (d, inner), "c_proj": (inner, d)}
        mlp = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})
        attn = nn.ModuleDict({"attention": attention})
        return nn.ModuleDict({"ln_1": Scale(d, "weight"), "attn": attn, "ln_2": Scale(d, "weight"), "mlp": mlp})

    blocks = nn.ModuleList(block() for _ in range(num_hidden_layers or num_layers))
    transformer = nn.ModuleDict({"wte": nn.Embedding(vocab_size, d), "h": blocks, "ln_f": Scale(d, "weight")})
    model = nn.ModuleDict({"transformer": transformer, "lm_head": nn.Linear(d, vocab_size, bias=False)})
    if tie_word_embeddings:
        model["lm_head"].weight = transformer["wte"].weight
    return model


def _internlm2(  # the keys of its configuration_internlm2.py
    vocab_size: int = 103168,
    hidden_size: int = 4096,
    intermediate_size: int = 11008,
    num_hidden_layers: int = 32,
    num_attention_heads: int = 32,
    num_key_value_heads: int | None = None,
    bias: bool = True,
    tie_word_embeddings: bool = False,
    **_: Any,
) -> nn.Module:
    d, inner, size = hidden_size, intermediate_size, hidden_size // num_attention_heads
    rows = (num_attention_heads + 2 * (num_key_value_heads or num_attention_heads)) * size

    def block() -> nn.Module:
        attention = nn.ModuleDict({"wqkv": nn.Linear(d, rows, bias=bias), "wo": nn.Linear(d, d, bias=bias)})
        sides = {"w1": (d, inner), "w3": (d, inner), "w2": (inner, d)}
        feed_forward = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})
        norms = {name: Scale(d, "weight") for name in ("attention_norm", "ffn_norm")}
        return nn.ModuleDict({"attention": attention, "feed_forward": feed_forward, **norms})

    layers = nn.ModuleList(block() for _ in range(num_hidden_layers))
    body = nn.ModuleDict({"tok_embeddings": nn.Embedding(vocab_size, d), "layers": layers, "norm": Scale(d, "weight")})
    model = nn.ModuleDict({"model": body, "output": nn.Linear(d, vocab_size, bias=False)})
    if tie_word_embeddings:
        model["output"].weight = body["tok_embeddings"].weight
    return model


def _qwen(  # the keys of Qwen-7B's configuration_qwen.py
    vocab_size: int = 151936,
    hidden_size: int = 4096,
    num_hidden_layers: int = 32,
    num_attention_heads: int = 32,
    kv_channels: int = 128,
    intermediate_size: int = 22016,
    no_bias: bool = True,
    tie_word_embeddings: bool = False,
    **_: Any,
) -> nn.Module:
    d, half, projection, bias = hidden_size, intermediate_size // 2, kv_channels * num_attention_heads, not no_bias

    def block() -> nn.Module:
        c_attn, c_proj = nn.Linear(d, 3 * projection), nn.Linear(d, projection, bias=bias)
        attn = nn.ModuleDict({"c_attn": c_attn, "c_proj": c_proj})
        sides = {"w1": (d, half), "w2": (d, half), "c_proj": (half, d)}
        mlp = nn.ModuleDict({name: nn.Linear(*shape, bias=bias) for name, shape in sides.items()})
        return nn.ModuleDict({"ln_1": Scale(d, "weight"), "attn": attn, "ln_2": Scale(d, "weight"), "mlp": mlp})

    blocks = nn.ModuleList(block() for _ in range(num_hidden_layers))
    transformer = nn.ModuleDict({"wte": nn.Embedding(vocab_size, d), "h": blocks, "ln_f": Scale(d, "weight")})
    model = nn.ModuleDict({"transformer": transformer, "lm_head": nn.Linear(d, vocab_size, bias=False)})
    if tie_word_embeddings:
        model["lm_head"].weight = transformer["wte"].weight
    return model


def _baichuan(  # the keys of Baichuan2-13B's configuration_baichuan.py
    vocab_size: int = 64000,
    hidden_size: int = 5120,
    intermediate_size: int = 13696,
    num_hidden_layers: int = 40,
    num_attention_heads: int = 40,
    tie_word_embeddings: bool = False,
    **_: Any,
) -> nn.Module:
    d, inner = hidden_size, intermediate_size
    together = num_attention_heads * (d // num_attention_heads)

    def layer() -> nn.Module:
        attends = {"W_pack": nn.Linear(d, 3 * d, bias=False), "o_proj": nn.Linear(together, d, bias=False)}
        sides = {"gate_proj": (d, inner), "down_proj": (inner, d), "up_proj": (d, inner)}
        mlp = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})
        norms = {name: Scale(d, "weight") for name in ("input_layernorm", "post_attention_layernorm")}
        return nn.ModuleDict({"self_attn": nn.ModuleDict(attends), "mlp": mlp, **norms})

    layers = nn.ModuleList(layer() for _ in range(num_hidden_layers))
    body = nn.ModuleDict({"embed_tokens": nn.Embedding(vocab_size, d), "layers": layers, "norm": Scale(d, "weight")})
    head = nn.Linear(d, vocab_size, bias=False)  # Baichuan 2's NormHead has the same one tensor
    model = nn.ModuleDict({"model": body, "lm_head": head})
    if tie_word_embeddings:
        head.weight = body["embed_tokens"].weight
    return model


SKELETONS: dict[str, Callable[..., nn.Module]] = {
    "baichuan": _baichuan,
    "book_gpt": _book_gpt,
    "book_llama": _book_llama,
    "exaone": _exaone,
    "internlm2": _internlm2,
    "nanogpt": _nanogpt,
    "qwen": _qwen,
}
