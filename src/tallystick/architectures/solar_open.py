"""Solar Open: Llama's attention, and DeepSeek-V3's experts in every layer.

Source: Upstage 2026, "Solar Open Technical Report".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import sigmoid_mixture
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "solar_open",
    "SolarOpenForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=196608,
    hidden_size=4096,
    moe_intermediate_size=1280,
    num_hidden_layers=48,
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=128,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def solar_open(c: Config) -> nn.Model:
    attends = kit.attention(c, kit.heads(c), bias=c.attention_bias, output_bias=False)
    return kit.decoder(c, kit.pre_norm(attends, sigmoid_mixture(c), nn.RMSNorm(c.hidden_size)))
