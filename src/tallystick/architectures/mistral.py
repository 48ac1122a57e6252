"""Mistral (Jiang et al. 2023, "Mistral 7B")."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe, natural


@architecture(
    "mistral",
    "MistralForCausalLM",
    running={**SILU, "sliding_window": natural(4096, nullable=True)},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(8),
    head_dim=maybe(),
    tie_word_embeddings=False,
)
def mistral(c: Config) -> Model:
    d = c.hidden_size
    attends = attention(c, heads(c, windows=((c.sliding_window, 1),)))
    mlp = gated_mlp(d, c.intermediate_size, c.hidden_act)
    return decoder(c, pre_norm(attends, mlp, RMSNorm(d)))
