"""ERNIE 4.5 (Baidu ERNIE Team 2025, "ERNIE 4.5 Technical Report"), dense."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "ernie4_5",
    "Ernie4_5ForCausalLM",
    running=SILU,
    vocab_size=103424,
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=18,
    num_attention_heads=16,
    num_key_value_heads=maybe(2),
    head_dim=maybe(128),
    use_bias=maybe(False),
    tie_word_embeddings=True,
)
def ernie4_5(c: Config) -> Model:
    d, bias = c.hidden_size, c.use_bias
    attends = attention(c, heads(c, precise=True, repeating=True), bias=bias)
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act, bias=bias), RMSNorm(d)))
