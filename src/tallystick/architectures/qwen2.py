"""Qwen2 and Qwen2.5 (Yang et al. 2024, "Qwen2 Technical Report")."""

from tallystick.architectures._decoder import (
    SILU,
    SLIDING,
    attention,
    decoder,
    gated_mlp,
    heads,
    late_windows,
    pre_norm,
)
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


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
    attends = attention(c, heads(c, windows=late_windows(c)), bias=True, output_bias=False)
    mlp = gated_mlp(d, c.intermediate_size, c.hidden_act)
    return decoder(c, pre_norm(attends, mlp, RMSNorm(d)))
