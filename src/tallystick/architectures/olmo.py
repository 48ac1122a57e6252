"""OLMo: Llama's block with norms without parameters.

Source: Groeneveld et al. 2024, "OLMo: Accelerating the Science of Language Models".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "olmo",
    "OlmoForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
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
def olmo(c: Config) -> nn.Model:
    d = c.hidden_size
    norm = nn.LayerNorm(d, scale=False, bias=False, kind="layer32")
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias)
    return kit.decoder(c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act), norm), norm)
