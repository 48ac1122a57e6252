"""The truth that the ledger is compared with: models that others build, on the meta device, weights never made.

transformers builds those that it knows. The book's classes and nanoGPT are no package, so their constructors stand
here in skeleton, written from the published state dicts and not from our blueprints.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import transformers
from torch import nn

from holding import Truth
from nesting import nested

transformers.logging.set_verbosity_error()


def read(model: nn.Module) -> Truth:
    """What `model` holds."""
    named = list(model.named_parameters(remove_duplicate=False))
    groups: dict[int, set[str]] = {}
    for name, parameter in named:
        groups.setdefault(id(parameter), set()).add(name)
    shapes = {name: tuple(parameter.shape) for name, parameter in named}
    return Truth(
        shapes=shapes,
        ties={frozenset(names) for names in groups.values() if len(names) > 1},
        buffers={name: tuple(t.shape) for name, t in model.state_dict().items() if name not in shapes},
        total=sum(math.prod(parameter.shape) for parameter in model.parameters()),
        trainable=sum(math.prod(parameter.shape) for parameter in model.parameters() if parameter.requires_grad),
    )


# What gives tensors their first values. On the meta device there are none to give, and the trying takes half of the time.
INITIALISERS = [name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")]


@mock.patch.multiple(nn.init, **dict.fromkeys(INITIALISERS, lambda tensor, *_, **__: tensor))
def build(values: dict[str, Any]) -> nn.Module:
    """The causal language model that transformers builds from a config, or a skeleton below."""
    values = copy.deepcopy(values)  # transformers writes into dictionaries that it is given
    model_type = values.pop("model_type")
    with torch.device("meta"):
        if model_type in SKELETONS:
            return SKELETONS[model_type](**values)
        config = transformers.AutoConfig.for_model(model_type, **nested(values))
        return transformers.AutoModelForCausalLM.from_config(config)


def truth(values: dict[str, Any]) -> Truth:
    """What the model of a config holds."""
    return read(build(values))


# -- what is measured once, and committed ---------------------------------------------------------


def model(values: dict[str, Any]) -> str | None:
    """The digest of what the model of a config holds; None of a config of which transformers builds no model, for any reason."""
    try:
        return truth(values).digest
    except Exception:
        return None


def of_class(values: dict[str, Any]) -> list[str]:
    """The name of the class of a config's model, and the digest of what that holds."""
    built = build(values)
    return [type(built).__name__, read(built).digest]


# -- skeletons ------------------------------------------------------------------------------------


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


SKELETONS: dict[str, Callable[..., nn.Module]] = {
    "book_gpt": _book_gpt,
    "book_llama": _book_llama,
    "nanogpt": _nanogpt,
}
