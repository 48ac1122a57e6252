"""Falcon: the original and the new (40B) decoder architecture.

Source: Almazrouei et al. 2023, "The Falcon Series of Open Language Models".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional

ONE_EACH = 2  # num_ln_in_parallel_attn: attention and MLP have a norm each


@architecture(
    "falcon",
    "FalconForCausalLM",
    variants=OLDER,
    aliases={"n_embed": "hidden_size"},
    running={"activation": "gelu", "alibi": optional(False)},
    vocab_size=65024,
    hidden_size=4544,
    ffn_hidden_size=optional(),
    num_hidden_layers=32,
    num_attention_heads=71,
    num_kv_heads=optional(),
    num_ln_in_parallel_attn=nonnegative(None, nullable=True),
    new_decoder_architecture=optional(False),
    multi_query=optional(True),
    parallel_attn=optional(True),
    bias=optional(False),
    tie_word_embeddings=True,
)
def falcon(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, bias = c.hidden_size, c.bias
    inner = c.ffn_hidden_size or 4 * d
    parallel = c.new_decoder_architecture or c.parallel_attn
    keys, size = _key_value_heads(c), d / c.num_attention_heads
    block = (nn.ParallelBlock if parallel else nn.Module)(
        self_attention=nn.Attention(
            nn.Heads(
                c.num_attention_heads,
                keys,
                size,
                rotary=0 if c.alibi else None,
            ),
            query_key_value=nn.Linear(d, d + 2 * keys * size, bias=bias),
            dense=nn.Linear(d, d, bias=bias),
        ),
        mlp=kit.plain_mlp(d, inner, c.activation, "dense_h_to_4h", "dense_4h_to_h", bias=bias),
        **{name: nn.LayerNorm(d) for name in _norms(c)},
    )
    return nn.Model(
        transformer=nn.Module(
            word_embeddings=nn.Embedding(c.vocab_size, d), h=nn.Repeat(c.num_hidden_layers, block), ln_f=nn.LayerNorm(d)
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.word_embeddings.weight") if c.tie_word_embeddings else None,
    )


def _key_value_heads(c: Config) -> int:
    """Key/value heads: one (multi-query), one per group (new design), or one per query head."""
    if not c.new_decoder_architecture:
        return 1 if c.multi_query else c.num_attention_heads
    if c.num_kv_heads:  # grouped-query, whatever multi_query says
        c.require_divisible("num_attention_heads", by="num_kv_heads")
    heads: int = c.num_kv_heads or c.num_attention_heads
    return heads


def _norms(c: Config) -> tuple[str, ...]:
    """Names of the norms in a block."""
    if not c.parallel_attn:
        return "post_attention_layernorm", "input_layernorm"
    # In parallel, attention and MLP can share one norm; the new architecture has one for each.
    norms = c.num_ln_in_parallel_attn
    separate = c.new_decoder_architecture if norms is None else norms == ONE_EACH
    return ("ln_attn", "ln_mlp") if separate else ("input_layernorm",)
