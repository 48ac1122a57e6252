"""Ministral 3's text model (Mistral AI 2025): Mistral with position-scaled queries."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "ministral3",
    "Ministral3ForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(None, nullable=True)},
    vocab_size=131072,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=34,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=False,
)
def ministral3(c: Config) -> nn.Model:
    d = c.hidden_size
    runs = kit.heads(c, windows=((c.sliding_window, 1),), temperature_tuning=True)
    return kit.decoder(
        c, kit.pre_norm(kit.attention(c, runs), kit.gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d))
    )
