"""GLM-4 9B and GLM-Edge (GLM Team 2024, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools")."""

from tallystick.architectures._decoder import SILU, attention, decoder, fused_gated_mlp, heads, pre_norm, turned
from tallystick.blueprint import Attention, Config, Model, RMSNorm, architecture


@architecture(
    "glm",
    "GlmForCausalLM",
    running={**SILU, "partial_rotary_factor": 0.5, "rope_parameters": None},
    vocab_size=151552,
    hidden_size=4096,
    intermediate_size=13696,
    num_hidden_layers=40,
    num_attention_heads=32,
    num_key_value_heads=2,
    head_dim=128,
    attention_bias=True,
    tie_word_embeddings=False,
)
def glm(c: Config) -> Model:
    d = c.hidden_size
    return decoder(c, pre_norm(half_turned(c), fused_gated_mlp(d, c.intermediate_size, c.hidden_act), RMSNorm(d)))


def half_turned(c: Config) -> Attention:
    """Half of each head is turned by its position."""
    runs = heads(c, rotary=turned(c, c.head_dim), joined=True, repeating=True)
    return attention(c, runs, bias=c.attention_bias, output_bias=False)
