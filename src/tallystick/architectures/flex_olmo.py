"""FlexOlmo: OLMo 2 with experts.

Source: Shi et al. 2025, "FlexOlmo: Open Language Models for Flexible Data Use".
"""

from tallystick.architectures import kit
from tallystick.architectures.olmo2 import block
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "flex_olmo",
    "FlexOlmoForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=100352,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    num_experts=7,
    num_experts_per_tok=5,
    attention_bias=False,
    tie_word_embeddings=False,
)
def flex_olmo(c: Config) -> nn.Model:
    used = kit.experts_used(c, "num_experts")
    moe = kit.mixture(c, c.intermediate_size, used, c.num_experts, scoring="softmax", weights="own")
    return kit.decoder(c, block(c, moe), nn.RMSNorm(c.hidden_size, kind="rms32"))
