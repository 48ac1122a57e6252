"""OLMo 3 (OLMo Team 2025, "Olmo 3"): OLMo 2 with sliding windows."""

from tallystick.architectures import kit
from tallystick.architectures.olmo2 import block
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "olmo3",
    "Olmo3ForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(4096, nullable=True), "layer_types": None},
    vocab_size=50304,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo3(c: Config) -> nn.Model:
    windows = kit.windows_of(c, ((c.sliding_window, 3), (None, 1)))
    return kit.decoder(c, block(c, windows=windows), nn.RMSNorm(c.hidden_size, kind="rms32"))
