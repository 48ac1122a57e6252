"""The decoder of BART and the families like it: causal attention, attention to an encoder, and an MLP, each with a norm.

transformers' causal language model of such a type is this decoder alone. Its attention to an encoder is there, and runs
only where somebody hands in what an encoder gave.
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config

# The first two rows of a table of positions stand for none: padding once began there.
OFFSET = 2


def learned(c: Config, *, offset: int = OFFSET) -> nn.Module:
    """Learned positions, `offset` rows more than there are."""
    return nn.PositionEmbedding(c.max_position_embeddings + offset, c.d_model)


def sinusoidal(c: Config) -> nn.Module:
    """Positions by sines and cosines, stored with the parameters, and never trained."""
    return nn.Module(weight=nn.Parameter((c.max_position_embeddings, c.d_model), "position_embedding", trainable=False))


def attention(
    d: int, runs: nn.Heads | None, *, reads: int | None = None, bias: bool = True, key_bias: bool = True
) -> nn.Attention:
    """Separate projections of one width; keys and values are of `reads` elements, where that is another."""
    return nn.Attention(
        runs,
        k_proj=nn.Linear(reads or d, d, bias=bias and key_bias),
        v_proj=nn.Linear(reads or d, d, bias=bias),
        q_proj=nn.Linear(d, d, bias=bias),
        out_proj=nn.Linear(d, d, bias=bias),
    )


def heads(c: Config, width: str, count: str) -> nn.Heads:
    """Heads that share out the width, which `width` and `count` are the keys of; no position turns them."""
    c.require_divisible(width, by=count)
    number = getattr(c, count)
    return nn.Heads(number, number, getattr(c, width) / number, rotary=0)


def layer(
    d: int, runs: nn.Heads | None, inner: int, cross: nn.Attention | None, *, bias: bool = True, key_bias: bool = True
) -> nn.Module:
    """One block; `cross` is what attends to an encoder, `bias` and `key_bias` are those of the attention."""
    norm = nn.LayerNorm(d)
    return nn.Module(
        self_attn=attention(d, runs, bias=bias, key_bias=key_bias),
        self_attn_layer_norm=norm,
        encoder_attn=cross,
        encoder_attn_layer_norm=norm if cross else None,
        fc1=nn.MLP(**nn.Linear(d, inner).children),
        fc2=nn.MLP(**nn.Linear(inner, d).children),
        final_layer_norm=norm,
    )


def beside_encoder(
    c: Config,
    positions: nn.Module | None,
    *,
    embedding_norm: bool = False,
    final_norm: bool = False,
    bias: bool = True,
    key_bias: bool = True,
    reads: int | None = None,
    head: str = "lm_head",
    vocabulary: int | None = None,
    tied: bool = True,
) -> nn.Model:
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
    decoder = nn.Module(
        embed_tokens=nn.Embedding(rows, d),
        embed_positions=positions,
        layers=nn.Repeat(c.decoder_layers, block),
        layernorm_embedding=nn.LayerNorm(d) if embedding_norm else None,
        layer_norm=nn.LayerNorm(d) if final_norm else None,
    )
    return nn.Model(
        model=nn.Module(decoder=decoder),
        **{head: nn.Head(d, rows if tied else c.vocab_size)},
        tie=(f"{head}.weight", "model.decoder.embed_tokens.weight") if tied else None,
    )
