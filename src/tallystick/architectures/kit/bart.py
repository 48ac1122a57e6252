"""BART-style decoders: causal self-attention, cross-attention and an MLP, each with a norm.

In transformers, the `...ForCausalLM` of such a type is this decoder alone. Its cross-attention
exists, but runs only if encoder states are passed.
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config

# The first two rows of the position table are not positions: a reserve for padding.
OFFSET = 2


def learned(c: Config, *, offset: int = OFFSET) -> nn.Module:
    """Return learned positions with `offset` additional rows."""
    return nn.PositionEmbedding(c.max_position_embeddings + offset, c.d_model)


def sinusoidal(c: Config) -> nn.Module:
    """Return sinusoidal positions: stored as a parameter, never trained."""
    return nn.Module(weight=nn.Parameter((c.max_position_embeddings, c.d_model), "position_embedding", trainable=False))


def attention(
    d: int, runs: nn.Heads | None, *, reads: int | None = None, bias: bool = True, key_bias: bool = True
) -> nn.Attention:
    """Return projections of width d; keys and values read `reads` elements, or d."""
    return nn.Attention(
        runs,
        k_proj=nn.Linear(reads or d, d, bias=bias and key_bias),
        v_proj=nn.Linear(reads or d, d, bias=bias),
        q_proj=nn.Linear(d, d, bias=bias),
        out_proj=nn.Linear(d, d, bias=bias),
    )


def heads(c: Config, width: str, count: str) -> nn.Heads:
    """Return heads without rotary positions; `width` and `count` are config keys."""
    c.require_divisible(width, by=count)
    number = getattr(c, count)
    return nn.Heads(number, number, getattr(c, width) / number, rotary=0)


def layer(
    d: int, runs: nn.Heads | None, inner: int, cross: nn.Attention | None, *, bias: bool = True, key_bias: bool = True
) -> nn.Module:
    """Return one decoder block.

    Args:
        d: elements of a token.
        runs: the heads of self-attention.
        inner: hidden width of the MLP.
        cross: the cross-attention, if any.
        bias: whether the attention projections have a bias.
        key_bias: whether the key projection has one.
    """
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
    """Return the decoder as a causal language model.

    Args:
        c: the config, under BART's keys.
        positions: the position table; None if none is stored.
        embedding_norm: whether a norm follows the embeddings.
        final_norm: whether a norm follows the layers.
        bias: whether the attention projections have a bias.
        key_bias: whether the key projections have one.
        reads: width of the encoder states, if it differs from `d_model`.
        head: the name of the LM head.
        vocabulary: rows of the token embedding, if they differ from the head's.
        tied: whether the LM head can be tied to the token embedding.
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
