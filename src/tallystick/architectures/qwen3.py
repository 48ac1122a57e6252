"""Qwen3 (Yang et al. 2025, "Qwen3 Technical Report"), dense."""

from tallystick.architectures._decoder import (
    SILU,
    SLIDING,
    attention,
    decoder,
    gated_mlp,
    key_value_heads,
    late_windows,
)
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe


@architecture(
    "qwen3",
    "Qwen3ForCausalLM",
    running={**SLIDING, **SILU},
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=22016,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(32),
    head_dim=128,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3(c: Config) -> Model:
    d, size = c.hidden_size, c.head_dim
    block = Group(
        self_attn=attention(
            c,
            size,
            bias=c.attention_bias,
            windows=late_windows(c),
            q_norm=RMSNorm(size, times=c.num_attention_heads),
            k_norm=RMSNorm(size, times=key_value_heads(c)),
        ),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
