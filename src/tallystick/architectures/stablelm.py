"""StableLM 3B and 2 (Bellagente et al. 2024, "Stable LM 2 1.6B Technical Report")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "stablelm",
    "StableLmForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "partial_rotary_factor": 0.25, "rope_parameters": None, "hidden_dropout": 0.0},
    vocab_size=50304,
    hidden_size=2560,
    intermediate_size=6912,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=32,
    use_qkv_bias=False,
    qk_layernorm=False,
    use_parallel_residual=False,
    tie_word_embeddings=False,
)
def stablelm(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, normed = c.hidden_size, c.qk_layernorm
    size = d / c.num_attention_heads
    runs = kit.heads(
        c,
        size,
        rotary=kit.rotary_dim(c, size),
    )
    # Attention and MLP can run in parallel after one norm.
    block = (nn.ParallelBlock if c.use_parallel_residual else nn.Module)(
        self_attn=kit.attention(
            c,
            runs,
            bias=c.use_qkv_bias,
            output_bias=False,
            q_layernorm=_each(runs.queries, size) if normed else None,
            k_layernorm=_each(runs.keys, size) if normed else None,
        ),
        # With per-head norms, activations are not modelled.
        mlp=kit.gated_mlp(d, c.intermediate_size, None if normed else c.hidden_act),
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=None if c.use_parallel_residual else nn.LayerNorm(d),
        dropout=nn.Dropout(d, c.hidden_dropout),
    )
    return kit.decoder(c, block, nn.LayerNorm(d))


def _each(heads: int, size: int) -> nn.Module:
    """One norm per head, each with its own scale."""
    return nn.Module(norms=nn.Repeat(heads, nn.LayerNorm(size, bias=False)))
