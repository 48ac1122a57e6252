"""What BERT's descendants share: summed embeddings, layers with a norm behind each half, and heads that tie two tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, nonnegative

# BERT's own keys and defaults; most of its descendants change one or two.
KEYS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "is_decoder": False,  # no tensor, but a model with cross-attention must be one
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
PADDING = {"pad_token_id": nonnegative(1, nullable=True)}  # RoBERTa counts positions from the one after it


def embeddings(
    c: Config,
    width: int | None = None,
    *,
    positions: bool = True,
    types: bool = True,
    norm: bool = True,
    **more: nn.Node | None,
) -> nn.Module:
    """Embeddings of tokens, positions and types of token, `more` that is added to them, and the norm of their sum."""
    d = width or c.hidden_size
    return nn.Module(
        word_embeddings=nn.Embedding(c.vocab_size, d),
        position_embeddings=nn.PositionEmbedding(c.max_position_embeddings, d) if positions else None,
        token_type_embeddings=nn.Embedding(c.type_vocab_size, d) if types else None,
        **more,
        LayerNorm=nn.LayerNorm(d) if norm else None,
    )


def heads(c: Config, size: int | None = None, **how: Any) -> nn.Heads:
    """Heads that share out the width; a model that is no decoder lets them see every position."""
    if size is None:
        c.require_divisible("hidden_size", by="num_attention_heads")
        size = c.hidden_size / c.num_attention_heads
    count = c.num_attention_heads
    return nn.Heads(count, count, size, rotary=0, causal=c.is_decoder, **how)


def heads_after_padding(c: Config) -> nn.Heads:
    """The same where positions are counted from the one after the padding token's number: RoBERTa and the families like it."""
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
    """BERT's layers: attention, cross-attention where there is one, and an MLP in two parts.

    Args:
        c: the config.
        runs: the heads.
        bias: of queries, keys and values.
        behind: whether there is a norm behind the attention and behind the MLP.
        attention: what else the attention holds, as others hold their norm.
        intermediate: what else the MLP's first part holds.
        output: what else its second part holds.
        more: what else a layer holds.
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
    """What the last hidden state goes through before the head: a product, an activation, a norm."""
    width = width or c.hidden_size
    return {"dense": nn.Linear(c.hidden_size, width), norm: nn.LayerNorm(width)}


def with_cls(c: Config, base: str, encoder: nn.Module, *, width: int | None = None) -> nn.Model:
    """BERT's frame: the encoder by its name, and the head in ``cls.predictions``; `width` is that of the embedding."""
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
    """RoBERTa's frame: the encoder by its name, and ``lm_head`` with what is `before` its product."""
    return nn.Model(
        **{base: encoder},
        lm_head=nn.Module(bias=_bias(c), **before, decoder=nn.Head(c.hidden_size, c.vocab_size, bias=True)),
        tie=_ties(c, base, "lm_head"),
    )


def _bias(c: Config) -> nn.Tensor:
    """The head's bias as the module around it holds it; the product has one too, and both can be one."""
    return nn.Parameter((c.vocab_size,), "head")


def _ties(c: Config, base: str, head: str) -> dict[str, str]:
    if not c.tie_word_embeddings:
        return {}
    return {
        f"{head}.decoder.weight": f"{base}.embeddings.word_embeddings.weight",
        f"{head}.decoder.bias": f"{head}.bias",
    }


def roberta_like(c: Config, base: str = "roberta") -> nn.Model:
    """RoBERTa: BERT's encoder, whose positions begin behind the padding token's, and a head of another name."""
    encoder = nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=layers(c, heads_after_padding(c))))
    return with_lm_head(c, base, encoder, **transform(c, "layer_norm"))
