"""Ministral 8B: Mistral with sliding windows in some layers.

Source: Mistral AI 2024, "Un Ministral, des Ministraux".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, nonnegative


@architecture(
    "ministral",
    "MinistralForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(4096, nullable=True), "layer_types": None},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=REQUIRED,
    tie_word_embeddings=False,
)
def ministral(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, windows=kit.windows_of(c, ((c.sliding_window, 1),))))
    return kit.decoder(c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d)))
