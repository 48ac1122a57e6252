"""BERT-style encoders: summed embeddings, post-norm layers, LM heads with two ties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, nonnegative

# BERT's keys and defaults; most descendants change one or two.
KEYS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": nonnegative(2),
    "is_decoder": False,  # changes no tensor, but cross-attention requires it
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
PADDING = {"pad_token_id": nonnegative(1, nullable=True)}  # RoBERTa counts positions from pad_token_id + 1


def embeddings(
    c: Config,
    width: int | None = None,
    *,
    positions: bool = True,
    types: bool = True,
    norm: bool = True,
    **more: nn.Node | None,
) -> nn.Module:
    """Return the token, position and token type embeddings, and the norm of their sum.

    Args:
        c: the config.
        width: width of the embeddings; None: `hidden_size`.
        positions: whether there are learned positions.
        types: whether there are token type embeddings.
        norm: whether there is a norm.
        more: further embeddings that are added.
    """
    d = width or c.hidden_size
    return nn.Module(
        word_embeddings=nn.Embedding(c.vocab_size, d),
        position_embeddings=nn.PositionEmbedding(c.max_position_embeddings, d) if positions else None,
        token_type_embeddings=nn.Embedding(c.type_vocab_size, d) if types else None,
        **more,
        LayerNorm=nn.LayerNorm(d) if norm else None,
    )


def heads(c: Config, size: int | None = None, **how: Any) -> nn.Heads:
    """Return heads of hidden_size / num_attention_heads; not causal without `is_decoder`."""
    if size is None:
        c.require_divisible("hidden_size", by="num_attention_heads")
        size = c.hidden_size / c.num_attention_heads
    count = c.num_attention_heads
    return nn.Heads(count, count, size, rotary=0, causal=c.is_decoder, **how)


def heads_after_padding(c: Config) -> nn.Heads:
    """Return heads whose positions start after the padding token's number, as in RoBERTa."""
    left = c.max_position_embeddings if c.pad_token_id is None else c.max_position_embeddings - c.pad_token_id - 1
    return heads(c, longest=int(left) if left > 0 else None)


def layers(
    c: Config,
    runs: nn.Heads,
    *,
    bias: bool = True,
    behind: bool = True,
    attention: Mapping[str, nn.Node] | None = None,
    intermediate: Mapping[str, nn.Node] | None = None,
    output: Mapping[str, nn.Node] | None = None,
    **more: nn.Node,
) -> nn.ModuleList:
    """Return BERT's layers: attention, optional cross-attention, and an MLP in two parts.

    Args:
        c: the config.
        runs: the heads.
        bias: whether query, key and value projections have a bias.
        behind: whether a norm follows the attention and the MLP (post-norm).
        attention: further children of the attention, such as a pre-norm.
        intermediate: further children of the MLP's first part.
        output: further children of the MLP's second part.
        more: further children of a layer.
    """
    d, inner = c.hidden_size, c.intermediate_size
    if c.add_cross_attention and not c.is_decoder:
        raise c.refuse("add_cross_attention needs is_decoder = true")
    norm = nn.LayerNorm(d) if behind else None

    def attends(runs: nn.Heads | None) -> nn.Attention:
        width = c.num_attention_heads * size
        reads = {name: nn.Linear(d, width, bias=bias) for name in ("query", "key", "value")}
        return nn.Attention(
            runs, self=nn.Module(**reads), output=nn.Module(dense=nn.Linear(d, d), LayerNorm=norm), **attention or {}
        )

    size = runs.size
    block = nn.Module(
        attention=attends(runs),
        crossattention=attends(None) if c.add_cross_attention else None,
        intermediate=nn.MLP(dense=nn.Linear(d, inner), **intermediate or {}),
        output=nn.MLP(dense=nn.Linear(inner, d), LayerNorm=norm, **output or {}),
        **more,
    )
    return nn.Repeat(c.num_hidden_layers, block)


def transform(c: Config, norm: str = "LayerNorm", width: int | None = None) -> dict[str, nn.Node]:
    """Return the transform before the LM head: a linear layer and a norm."""
    width = width or c.hidden_size
    return {"dense": nn.Linear(c.hidden_size, width), norm: nn.LayerNorm(width)}


def with_cls(c: Config, base: str, encoder: nn.Module, *, width: int | None = None) -> nn.Model:
    """Return BERT's frame: the encoder under the name `base`, the LM head in ``cls.predictions``.

    `width` is the width of the token embedding, if it is not `hidden_size`.
    """
    predictions = nn.Module(
        bias=_bias(c),
        transform=nn.Module(**transform(c, width=width)),
        decoder=nn.Head(width or c.hidden_size, c.vocab_size, bias=True),
    )
    return nn.Model(
        **{base: encoder},
        cls=nn.Module(predictions=predictions),
        tie=_ties(c, base, "cls.predictions"),
    )


def with_lm_head(c: Config, base: str, encoder: nn.Module, **before: nn.Node) -> nn.Model:
    """Return RoBERTa's frame: the encoder under the name `base`, and ``lm_head``.

    `before` are the modules before the head's linear layer.
    """
    return nn.Model(
        **{base: encoder},
        lm_head=nn.Module(bias=_bias(c), **before, decoder=nn.Head(c.hidden_size, c.vocab_size, bias=True)),
        tie=_ties(c, base, "lm_head"),
    )


def _bias(c: Config) -> nn.Tensor:
    """The LM head's bias as its parent holds it; it can be tied to the bias of the linear layer."""
    return nn.Parameter((c.vocab_size,), "head")


def _ties(c: Config, base: str, head: str) -> dict[str, str]:
    if not c.tie_word_embeddings:
        return {}
    return {
        f"{head}.decoder.weight": f"{base}.embeddings.word_embeddings.weight",
        f"{head}.decoder.bias": f"{head}.bias",
    }


def roberta_like(c: Config, base: str = "roberta") -> nn.Model:
    """Return RoBERTa: BERT's encoder with positions after padding, and RoBERTa's LM head."""
    encoder = nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=layers(c, heads_after_padding(c))))
    return with_lm_head(c, base, encoder, **transform(c, "layer_norm"))
