"""Qwen2 and Qwen2.5 (Yang et al. 2024, "Qwen2 Technical Report")."""

from tallystick.architectures._decoder import SILU, SLIDING, attention, decoder, gated_mlp, head_dim, late_windows
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe


@architecture(
    "qwen2",
    "Qwen2ForCausalLM",
    running={**SLIDING, **SILU},
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=22016,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(32),
    head_dim=maybe(),
    tie_word_embeddings=False,
)
def qwen2(c: Config) -> Model:
    d = c.hidden_size
    block = Group(
        self_attn=attention(c, head_dim(c), bias=True, output_bias=False, windows=late_windows(c)),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
