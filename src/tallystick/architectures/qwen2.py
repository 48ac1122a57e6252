"""Qwen2 and Qwen2.5 (Yang et al. 2024, "Qwen2 Technical Report")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "qwen2",
    "Qwen2ForCausalLM",
    running={**kit.SLIDING, **kit.HIDDEN_ACT_SILU},
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=22016,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(32),
    head_dim=optional(),
    tie_word_embeddings=False,
)
def qwen2(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, windows=kit.late_windows(c)), bias=True, output_bias=False)
    mlp = kit.gated_mlp(d, c.intermediate_size, c.hidden_act)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.RMSNorm(d)))
