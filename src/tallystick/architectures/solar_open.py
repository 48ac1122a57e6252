"""Solar Open (Upstage 2026, "Solar Open Technical Report"): Llama's attention, and DeepSeek-V3's experts in every layer."""

from tallystick.architectures._decoder import SILU, attention, decoder, heads, pre_norm
from tallystick.architectures.deepseek_v3 import sigmoid_mixture
from tallystick.blueprint import Config, Model, RMSNorm, architecture, natural


@architecture(
    "solar_open",
    "SolarOpenForCausalLM",
    running=SILU,
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=196608,
    hidden_size=4096,
    moe_intermediate_size=1280,
    num_hidden_layers=48,
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=128,
    n_shared_experts=natural(1),
    n_routed_experts=128,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def solar_open(c: Config) -> Model:
    attends = attention(c, heads(c), bias=c.attention_bias, output_bias=False)
    return decoder(c, pre_norm(attends, sigmoid_mixture(c), RMSNorm(c.hidden_size)))
