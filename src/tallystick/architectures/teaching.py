"""The language models of a first course (``tallystick.models.teaching``), from an embedding and a head to a transformer."""

from itertools import pairwise

from tallystick.blueprint import (
    MLP,
    REQUIRED,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    PositionEmbedding,
    Repeat,
    Stack,
    architecture,
    maybe,
)


@architecture(
    "bare_bones_lm",
    "BareBonesLM",
    vocab_size=REQUIRED,
    d_model=REQUIRED,
    bias=True,
    tie_word_embeddings=False,
)
def bare_bones_lm(c: Config) -> Model:
    return Model(
        embedding=Embedding(c.vocab_size, c.d_model),
        head=Head(c.d_model, c.vocab_size, bias=c.bias),
        tie=("head.weight", "embedding.weight") if c.tie_word_embeddings else None,
    )


@architecture(
    "mlp",
    "MLP",
    widths=(),  # every width from the input's to the output's; or else these four, for hidden layers of one width
    inputs=maybe(),
    width=maybe(),
    depth=maybe(),
    outputs=maybe(),
    bias=True,
)
def mlp(c: Config) -> Model:
    sizes = {key: getattr(c, key) for key in ("inputs", "width", "depth", "outputs")}
    stated = [key for key, size in sizes.items() if size]
    if c.widths and stated:
        raise c.refuse(f"widths and {stated[0]} are two ways to say the same: keep one")
    if len(c.widths) == 1:
        raise c.refuse("widths holds one width: an MLP needs that of its input and that of its output")
    if not c.widths and len(stated) < len(sizes):
        missing = next(key for key in sizes if key not in stated)
        raise c.refuse(f"{missing} is missing: an MLP has widths, or inputs, width, depth and outputs")
    if c.widths:
        layers = [Linear(inputs, outputs, bias=c.bias) for inputs, outputs in pairwise(c.widths)]
        return _alone(MLP(layers=Group(**{str(number): layer for number, layer in enumerate(layers)})))
    last = Linear(c.width, c.outputs, bias=c.bias)
    return _alone(MLP(layers=_layers(c.inputs, c.width, c.depth, last, bias=c.bias)))


@architecture(
    "feed_forward_lm",
    "FeedForwardLM",
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    d_model=REQUIRED,
    width=REQUIRED,
    depth=1,
    bias=True,
)
def feed_forward_lm(c: Config) -> Model:
    head = Head(c.width, c.vocab_size, bias=c.bias)
    return Model(
        embedding=Embedding(c.vocab_size, c.d_model),
        mlp=MLP(layers=_layers(c.context_length * c.d_model, c.width, c.depth, head, bias=c.bias)),
    )


@architecture("single_head_attention", "SingleHeadAttention", d_model=REQUIRED, d_head=REQUIRED)
def single_head_attention(c: Config) -> Model:
    names = ("query", "key", "value")
    heads = Heads(1, 1, c.d_head)
    return _alone(Attention(heads, **{name: Linear(c.d_model, c.d_head, bias=False) for name in names}))


@architecture(
    "multi_head_attention", "MultiHeadAttention", d_model=REQUIRED, n_heads=REQUIRED, running={"rotary": False}
)
def multi_head_attention(c: Config) -> Model:
    return _alone(_attention(c, rotary=c.rotary))


@architecture(
    "transformer_layer", "TransformerLayer", d_model=REQUIRED, n_heads=REQUIRED, d_ff=maybe(), running={"rotary": False}
)
def transformer_layer(c: Config) -> Model:
    return _alone(_layer(c, rotary=c.rotary))


@architecture(
    "transformer_lm",
    "TransformerLM",
    vocab_size=REQUIRED,
    context_length=REQUIRED,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    d_ff=maybe(),
    bias=False,
    tie_word_embeddings=False,
)
def transformer_lm(c: Config) -> Model:
    return _transformer(c, PositionEmbedding(c.context_length, c.d_model), rotary=False)


@architecture(
    "rotary_transformer_lm",
    "RotaryTransformerLM",
    vocab_size=REQUIRED,
    d_model=REQUIRED,
    n_layers=REQUIRED,
    n_heads=REQUIRED,
    d_ff=maybe(),
    bias=False,
    tie_word_embeddings=False,
)
def rotary_transformer_lm(c: Config) -> Model:
    return _transformer(c, None, rotary=True)


# -- what they share ------------------------------------------------------------------------------


def _layers(inputs: int, width: int, depth: int, last: Group, *, bias: bool) -> Stack:
    """`depth` hidden layers of one width, and the last."""
    between = Linear(width, width, bias=bias)
    return Stack((1, Linear(inputs, width, bias=bias)), (depth - 1, between), (1, last))


def _attention(c: Config, *, rotary: bool) -> Attention:
    c.require_divisible("d_model", by="n_heads")
    size = int(c.d_model) // int(c.n_heads)
    if rotary and size % 2:
        raise c.refuse(f"d_model / n_heads = {size} is odd: rotary positions turn pairs", code="indivisible")
    names = ("query", "key", "value", "output")
    heads = Heads(c.n_heads, c.n_heads, c.d_model / c.n_heads)
    return Attention(heads, **{name: Linear(c.d_model, c.d_model, bias=False) for name in names})


def _layer(c: Config, *, rotary: bool) -> Group:
    d, inner = c.d_model, c.d_ff or 4 * c.d_model
    return Group(
        attention=_attention(c, rotary=rotary),
        attention_norm=LayerNorm(d),
        mlp=MLP(layers=Group(**{"0": Linear(d, inner), "1": Linear(inner, d)})),
        mlp_norm=LayerNorm(d),
    )


def _transformer(c: Config, positions: Group | None, *, rotary: bool) -> Model:
    return Model(
        token_embedding=Embedding(c.vocab_size, c.d_model),
        position_embedding=positions,
        layers=Repeat(c.n_layers, _layer(c, rotary=rotary)),
        head=Head(c.d_model, c.vocab_size, bias=c.bias),
        tie=("head.weight", "token_embedding.weight") if c.tie_word_embeddings else None,
    )


def _alone(part: Group) -> Model:
    """A part of a model as a whole: its tensors keep its role."""
    return Model().replace(children=part.children, role=part.role)
