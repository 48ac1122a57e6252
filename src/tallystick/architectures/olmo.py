"""OLMo (Groeneveld et al. 2024, "OLMo: Accelerating the Science of Language Models"): norms without scales."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Config, LayerNorm, Model, architecture, maybe


@architecture(
    "olmo",
    "OlmoForCausalLM",
    running=SILU,
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
def olmo(c: Config) -> Model:
    d = c.hidden_size
    norm = LayerNorm(d, scale=False, bias=False, kind="layer32")
    attends = attention(c, heads(c, precise=True), bias=c.attention_bias)
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act), norm), norm)
