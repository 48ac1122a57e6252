"""Seed-OSS (ByteDance Seed 2025, "Seed-OSS Open-Source Models")."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads
from tallystick.blueprint import Config, Dropout, Group, Model, RMSNorm, architecture, maybe


@architecture(
    "seed_oss",
    "SeedOssForCausalLM",
    running={**SILU, "residual_dropout": 0.1, "attention_dropout": 0.1},
    vocab_size=155136,
    hidden_size=4096,
    intermediate_size=27648,
    num_hidden_layers=64,
    num_attention_heads=80,
    num_key_value_heads=maybe(8),
    head_dim=maybe(128),
    attention_bias=True,
    attention_out_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def seed_oss(c: Config) -> Model:
    d = c.hidden_size
    runs = heads(c, dropout=c.attention_dropout > 0)
    block = Group(
        self_attn=attention(c, runs, bias=c.attention_bias, output_bias=c.attention_out_bias),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        dropout=Dropout(2 * d, c.residual_dropout),  # of what the attention gives, and of what the MLP gives
    )
    return decoder(c, block)
