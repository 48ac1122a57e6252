"""FlexOlmo (Shi et al. 2025, "FlexOlmo: Open Language Models for Flexible Data Use"): OLMo 2 with experts."""

from tallystick.architectures._decoder import SILU, decoder, experts_used, mixture
from tallystick.architectures.olmo2 import block
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "flex_olmo",
    "FlexOlmoForCausalLM",
    running=SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=100352,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    num_experts=7,
    num_experts_per_tok=5,
    attention_bias=False,
    tie_word_embeddings=False,
)
def flex_olmo(c: Config) -> Model:
    used = experts_used(c, "num_experts")
    moe = mixture(c, c.intermediate_size, used, c.num_experts, scoring="softmax", weights="own")
    return decoder(c, block(c, moe), RMSNorm(c.hidden_size, kind="rms32"))
