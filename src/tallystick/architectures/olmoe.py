"""OLMoE (Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models")."""

from tallystick.architectures._decoder import (
    SILU,
    attention,
    decoder,
    experts_used,
    heads,
    mixture,
    pre_norm,
    rounded,
)
from tallystick.blueprint import Config, Model, RMSNorm, architecture, maybe


@architecture(
    "olmoe",
    "OlmoeForCausalLM",
    running=SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=50304,
    hidden_size=2048,
    intermediate_size=2048,
    num_hidden_layers=16,
    num_attention_heads=16,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    num_experts=64,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmoe(c: Config) -> Model:
    d, runs = c.hidden_size, heads(c)
    attends = attention(
        c,
        runs,
        bias=c.attention_bias,
        # Over all heads at once, and as wide as the width makes them, whatever head_dim says.
        q_norm=RMSNorm(d),
        k_norm=RMSNorm(rounded(d, c.num_attention_heads) * runs.keys),
    )
    used = experts_used(c, "num_experts")
    moe = mixture(c, c.intermediate_size, used, c.num_experts, scoring="softmax", weights="own")
    return decoder(c, pre_norm(attends, moe, RMSNorm(d)))
