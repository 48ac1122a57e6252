"""HyperCLOVA X SEED: Granite, with optional post-norms.

Source: NAVER Cloud 2025, "HyperCLOVA X THINK Technical Report".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "hyperclovax",
    "HyperCLOVAXForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    use_post_norm=True,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hyperclovax(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    after = nn.RMSNorm(d, after=True) if c.use_post_norm else None
    block = nn.Module(
        self_attn=kit.attention(c, kit.heads(c), bias=c.attention_bias),
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        post_norm1=after,
        post_norm2=after,
    )
    return kit.decoder(c, block)
