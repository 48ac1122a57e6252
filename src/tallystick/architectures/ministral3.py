"""Ministral 3 without its eyes (Mistral AI 2025): Mistral whose queries are scaled by their position."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Config, Model, RMSNorm, architecture, natural


@architecture(
    "ministral3",
    "Ministral3ForCausalLM",
    running={**SILU, "sliding_window": natural(None, nullable=True)},
    vocab_size=131072,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=34,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=False,
)
def ministral3(c: Config) -> Model:
    d = c.hidden_size
    runs = heads(c, windows=((c.sliding_window, 1),), tempered=True)
    return decoder(c, pre_norm(attention(c, runs), gated_mlp(d, c.intermediate_size, c.hidden_act), RMSNorm(d)))
