"""GLM-4 9B and GLM-Edge.

Source: GLM Team 2024, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All
Tools".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "glm",
    "GlmForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "partial_rotary_factor": 0.5, "rope_parameters": None},
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
def glm(c: Config) -> nn.Model:
    d = c.hidden_size
    return kit.decoder(
        c, kit.pre_norm(half_turned(c), kit.fused_gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d))
    )


def half_turned(c: Config) -> nn.Attention:
    """Return attention with partial rotary positions: by default half of each head."""
    runs = kit.heads(c, rotary=kit.rotary_dim(c, c.head_dim))
    return kit.attention(c, runs, bias=c.attention_bias, output_bias=False)
