"""Seed-OSS (ByteDance Seed 2025, "Seed-OSS Open-Source Models")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "seed_oss",
    "SeedOssForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "residual_dropout": 0.1, "attention_dropout": 0.1},
    vocab_size=155136,
    hidden_size=4096,
    intermediate_size=27648,
    num_hidden_layers=64,
    num_attention_heads=80,
    num_key_value_heads=optional(8),
    head_dim=optional(128),
    attention_bias=True,
    attention_out_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def seed_oss(c: Config) -> nn.Model:
    d = c.hidden_size
    runs = kit.heads(c, dropout=c.attention_dropout > 0)
    block = nn.Module(
        self_attn=kit.attention(c, runs, bias=c.attention_bias, output_bias=c.attention_out_bias),
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        dropout=nn.Dropout(2 * d, c.residual_dropout),  # after attention and after the MLP
    )
    return kit.decoder(c, block)
