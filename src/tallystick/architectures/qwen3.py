"""Qwen3 (Yang et al. 2025, "Qwen3 Technical Report"), dense."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "qwen3",
    "Qwen3ForCausalLM",
    running={**kit.SLIDING, **kit.HIDDEN_ACT_SILU},
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=22016,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(32),
    head_dim=128,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3(c: Config) -> nn.Model:
    d, runs = c.hidden_size, kit.heads(c, windows=kit.late_windows(c))
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs))
    mlp = kit.gated_mlp(d, c.intermediate_size, c.hidden_act)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d)))
