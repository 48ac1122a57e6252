"""OLMo 3 (OLMo Team 2025, "Olmo 3"): OLMo 2 with windows."""

from tallystick.architectures._decoder import SILU, decoder, windows_of
from tallystick.architectures.olmo2 import block
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "olmo3",
    "Olmo3ForCausalLM",
    running={**SILU, "sliding_window": natural(4096, nullable=True), "layer_types": None},
    vocab_size=50304,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo3(c: Config) -> Model:
    windows = windows_of(c, ((c.sliding_window, 3), (None, 1)))
    return decoder(c, block(c, windows=windows, apart=True), RMSNorm(c.hidden_size, kind="rms32"))
