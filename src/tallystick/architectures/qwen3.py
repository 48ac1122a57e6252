"""Qwen3 (Yang et al. 2025, "Qwen3 Technical Report"), dense."""

from tallystick.architectures._decoder import (
    SILU,
    SLIDING,
    attention,
    decoder,
    gated_mlp,
    head_norms,
    heads,
    late_windows,
    pre_norm,
)
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


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
    d, runs = c.hidden_size, heads(c, windows=late_windows(c))
    attends = attention(c, runs, bias=c.attention_bias, **head_norms(runs))
    mlp = gated_mlp(d, c.intermediate_size, c.hidden_act)
    return decoder(c, pre_norm(attends, mlp, RMSNorm(d)))
