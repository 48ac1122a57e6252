"""Ministral 8B (Mistral AI 2024, "Un Ministral, des Ministraux"): Mistral, with windows in some layers."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm, windows_of
from tallystick.blueprint import REQUIRED, Config, Model, RMSNorm, architecture, natural


@architecture(
    "ministral",
    "MinistralForCausalLM",
    running={**SILU, "sliding_window": natural(4096, nullable=True), "layer_types": None},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=REQUIRED,
    tie_word_embeddings=False,
)
def ministral(c: Config) -> Model:
    d = c.hidden_size
    attends = attention(c, heads(c, windows=windows_of(c, ((c.sliding_window, 1),))))
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act), RMSNorm(d)))
