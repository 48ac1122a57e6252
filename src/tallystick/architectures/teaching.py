"""The models of a first course, from an embedding and a head to a transformer LM.

``tallystick.models.teaching`` holds their PyTorch modules.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional
from tallystick.core.size_names import aliases_of

Build = Callable[[Config], nn.Model]


def _taught(
    name: str, class_name: str, *, running: Mapping[str, Any] | None = None, **keys: Any
) -> Callable[[Build], Build]:
    """Register a model whose sizes have the names of any course, as ``emb_dim`` for ``d_model``."""
    return architecture(name, class_name, aliases=aliases_of(keys), running=running, **keys)


@_taught("embedding", "Embedding", vocab_size=REQUIRED, d_model=REQUIRED)
def embedding(c: Config) -> nn.Model:
    return nn.Model(weight=nn.Parameter((c.vocab_size, c.d_model), "token_embedding"))


@_taught(
    "bare_bones_lm",
    "BareBonesLM",
    vocab_size=REQUIRED,
    d_model=REQUIRED,
    bias=True,
    tie_word_embeddings=False,
)
def bare_bones_lm(c: Config) -> nn.Model:
    return nn.Model(
        embedding=nn.Embedding(c.vocab_size, c.d_model),
        head=nn.Head(c.d_model, c.vocab_size, bias=c.bias),
        tie=("head.weight", "embedding.weight") if c.tie_word_embeddings else None,
    )


@_taught(
    "mlp",
    "MLP",
    widths=(),  # all layer widths; or else state the next four keys, for hidden layers of one width
    inputs=optional(),
    width=optional(),
    depth=optional(),
    outputs=optional(),
    bias=True,
)
def mlp(c: Config) -> nn.Model:
    sizes = {key: getattr(c, key) for key in ("inputs", "width", "depth", "outputs")}
    stated = [key for key, size in sizes.items() if size]
    if c.widths and stated:
        raise c.refuse(f"widths and {stated[0]} set the same thing: keep one")
    if len(c.widths) == 1:
        raise c.refuse("widths has one entry: an MLP needs an input width and an output width")
    if not c.widths and len(stated) < len(sizes):
        missing = next(key for key in sizes if key not in stated)
        raise c.refuse(f"{missing} is missing: an MLP has widths, or inputs, width, depth and outputs")
    if c.widths:
        layers = [nn.Linear(inputs, outputs, bias=c.bias) for inputs, outputs in pairwise(c.widths)]
        return _alone(nn.MLP(layers=nn.Module(**{str(number): layer for number, layer in enumerate(layers)})))
    last = nn.Linear(c.width, c.outputs, bias=c.bias)
    return _alone(nn.MLP(layers=_layers(c.inputs, c.width, c.depth, last, bias=c.bias)))


@_taught(
    "feed_forward_lm",
    "FeedForwardLM",
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    d_model=REQUIRED,
    width=REQUIRED,
    depth=1,
    bias=True,
)
def feed_forward_lm(c: Config) -> nn.Model:
    head = nn.Head(c.width, c.vocab_size, bias=c.bias)
    return nn.Model(
        embedding=nn.Embedding(c.vocab_size, c.d_model),
        mlp=nn.MLP(layers=_layers(c.context_length * c.d_model, c.width, c.depth, head, bias=c.bias)),
    )


@_taught(
    "position_wise_lm",
    "PositionWiseLM",
    vocab_size=REQUIRED,
    d_model=REQUIRED,
    width=REQUIRED,
    depth=1,
    bias=False,
    tie_word_embeddings=True,
)
def position_wise_lm(c: Config) -> nn.Model:
    last = nn.Linear(c.width, c.d_model)
    return nn.Model(
        embedding=nn.Embedding(c.vocab_size, c.d_model),
        mlp=nn.MLP(layers=_layers(c.d_model, c.width, c.depth, last, bias=True)),
        head=nn.Head(c.d_model, c.vocab_size, bias=c.bias),
        tie=("head.weight", "embedding.weight") if c.tie_word_embeddings else None,
    )


@_taught("single_head_attention", "SingleHeadAttention", d_model=REQUIRED, d_head=REQUIRED)
def single_head_attention(c: Config) -> nn.Model:
    names = ("query", "key", "value")
    heads = nn.Heads(1, 1, c.d_head)
    return _alone(nn.Attention(heads, **{name: nn.Linear(c.d_model, c.d_head, bias=False) for name in names}))


@_taught(
    "multi_head_attention",
    "MultiHeadAttention",
    d_model=REQUIRED,
    n_heads=REQUIRED,
    head_dim=optional(),
    running={"rotary": False},
)
def multi_head_attention(c: Config) -> nn.Model:
    return _alone(_attention(c, rotary=c.rotary))


@_taught(
    "transformer_layer",
    "TransformerLayer",
    d_model=REQUIRED,
    n_heads=REQUIRED,
    head_dim=optional(),
    d_ff=optional(),
    running={"rotary": False},
)
def transformer_layer(c: Config) -> nn.Model:
    return _alone(_layer(c, rotary=c.rotary))


@_taught(
    "transformer_lm",
    "TransformerLM",
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    head_dim=optional(),
    d_ff=optional(),
    bias=False,
    tie_word_embeddings=False,
)
def transformer_lm(c: Config) -> nn.Model:
    return _transformer(c, nn.PositionEmbedding(c.context_length, c.d_model), rotary=False)


@_taught(
    "rotary_transformer_lm",
    "RotaryTransformerLM",
    vocab_size=REQUIRED,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    head_dim=optional(),
    d_ff=optional(),
    bias=False,
    tie_word_embeddings=False,
)
def rotary_transformer_lm(c: Config) -> nn.Model:
    return _transformer(c, None, rotary=True)


# -- shared parts ---------------------------------------------------------------------------------


def _layers(inputs: int, width: int, depth: int, last: nn.Module, *, bias: bool) -> nn.ModuleList:
    """`depth` hidden layers of one width, and the last layer."""
    between = nn.Linear(width, width, bias=bias)
    return nn.ModuleList((1, nn.Linear(inputs, width, bias=bias)), (depth - 1, between), (1, last))


def _attention(c: Config, *, rotary: bool) -> nn.Attention:
    if c.head_dim is None:
        c.require_divisible("d_model", by="n_heads")
        size, joined = c.d_model / c.n_heads, c.d_model
    else:
        size, joined = c.head_dim, c.n_heads * c.head_dim
    if rotary and int(size) % 2:
        named = "d_model / n_heads" if c.head_dim is None else "head_dim"
        raise c.refuse(f"{named} = {int(size)} is odd: rotary embedding needs an even head size", code="indivisible")
    projections = {name: nn.Linear(c.d_model, joined, bias=False) for name in ("query", "key", "value")}
    output = nn.Linear(joined, c.d_model, bias=False)
    return nn.Attention(nn.Heads(c.n_heads, c.n_heads, size), **projections, output=output)


def _layer(c: Config, *, rotary: bool) -> nn.Module:
    d, inner = c.d_model, c.d_ff or 4 * c.d_model
    return nn.Module(
        attention=_attention(c, rotary=rotary),
        attention_norm=nn.LayerNorm(d),
        mlp=nn.MLP(layers=nn.Module(**{"0": nn.Linear(d, inner), "1": nn.Linear(inner, d)})),
        mlp_norm=nn.LayerNorm(d),
    )


def _transformer(c: Config, positions: nn.Module | None, *, rotary: bool) -> nn.Model:
    return nn.Model(
        token_embedding=nn.Embedding(c.vocab_size, c.d_model),
        position_embedding=positions,
        layers=nn.Repeat(c.n_layers, _layer(c, rotary=rotary)),
        head=nn.Head(c.d_model, c.vocab_size, bias=c.bias),
        tie=("head.weight", "token_embedding.weight") if c.tie_word_embeddings else None,
    )


def _alone(part: nn.Module) -> nn.Model:
    """A single part as a model; its tensors keep the part's role."""
    return nn.Model().replace(children=part.children, role=part.role)
