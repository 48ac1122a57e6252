"""The decoder of BART and its kin: causal attention, attention to an encoder, and an MLP, each with a norm.

transformers' causal language model of such a type is this decoder alone. Its attention to an encoder is there, and runs
only where somebody hands in what an encoder gave.
"""

from tallystick.blueprint import (
    MLP,
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
    Tensor,
)

# The first two rows of a table of positions stand for none: padding once began there.
OFFSET = 2


def learned(c: Config, *, offset: int = OFFSET) -> Group:
    """Learned positions, `offset` rows more than there are."""
    return PositionEmbedding(c.max_position_embeddings + offset, c.d_model)


def sinusoidal(c: Config) -> Group:
    """Positions by sines and cosines, stored with the parameters, and never trained."""
    return Group(weight=Tensor((c.max_position_embeddings, c.d_model), "position_embedding", trainable=False))


def attention(
    d: int, runs: Heads | None, *, reads: int | None = None, bias: bool = True, key_bias: bool = True
) -> Attention:
    """Separate projections of one width; keys and values are of `reads` elements, where that is another."""
    return Attention(
        runs,
        k_proj=Linear(reads or d, d, bias=bias and key_bias),
        v_proj=Linear(reads or d, d, bias=bias),
        q_proj=Linear(d, d, bias=bias),
        out_proj=Linear(d, d, bias=bias),
    )


def heads(c: Config, width: str, count: str) -> Heads:
    """Heads that share out the width, which `width` and `count` are the keys of; no position turns them."""
    c.require_divisible(width, by=count)
    number = getattr(c, count)
    return Heads(number, number, getattr(c, width) / number, rotary=0)


def layer(
    d: int, runs: Heads | None, inner: int, cross: Attention | None, *, bias: bool = True, key_bias: bool = True
) -> Group:
    """One block; `cross` is what attends to an encoder, `bias` and `key_bias` are those of the attention."""
    norm = LayerNorm(d)
    return Group(
        self_attn=attention(d, runs, bias=bias, key_bias=key_bias),
        self_attn_layer_norm=norm,
        encoder_attn=cross,
        encoder_attn_layer_norm=norm if cross else None,
        fc1=MLP(**Linear(d, inner).children),
        fc2=MLP(**Linear(inner, d).children),
        final_layer_norm=norm,
    )


def beside_encoder(
    c: Config,
    positions: Group | None,
    *,
    embedding_norm: bool = False,
    final_norm: bool = False,
    bias: bool = True,
    key_bias: bool = True,
    reads: int | None = None,
    head: str = "lm_head",
    vocabulary: int | None = None,
    tied: bool = True,
) -> Model:
    """The decoder as a causal language model.

    Args:
        c: the config, under BART's keys.
        positions: the table of positions, where one is stored.
        embedding_norm: whether a norm follows the embeddings.
        final_norm: whether one follows the layers.
        bias: of the attention's projections.
        key_bias: of those that give keys.
        reads: width of what an encoder gives, where that is another.
        head: its name.
        vocabulary: rows of the token embedding, where they are not those of the head.
        tied: whether the head can be tied to the token embedding.
    """
    d, tied = c.d_model, tied and c.tie_word_embeddings
    rows = vocabulary or c.vocab_size
    cross = attention(d, None, reads=reads, bias=bias, key_bias=key_bias)
    block = layer(
        d, heads(c, "d_model", "decoder_attention_heads"), c.decoder_ffn_dim, cross, bias=bias, key_bias=key_bias
    )
    decoder = Group(
        embed_tokens=Embedding(rows, d),
        embed_positions=positions,
        layers=Repeat(c.decoder_layers, block),
        layernorm_embedding=LayerNorm(d) if embedding_norm else None,
        layer_norm=LayerNorm(d) if final_norm else None,
    )
    return Model(
        model=Group(decoder=decoder),
        **{head: Head(d, rows if tied else c.vocab_size)},
        tie=(f"{head}.weight", "model.decoder.embed_tokens.weight") if tied else None,
    )
