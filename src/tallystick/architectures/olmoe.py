"""OLMoE: experts in every layer, and QK norm over all heads.

Source: Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "olmoe",
    "OlmoeForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=50304,
    hidden_size=2048,
    intermediate_size=2048,
    num_hidden_layers=16,
    num_attention_heads=16,
    num_key_value_heads=optional(),
    head_dim=optional(),
    num_experts=64,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmoe(c: Config) -> nn.Model:
    d, runs = c.hidden_size, kit.heads(c)
    attends = kit.attention(
        c,
        runs,
        bias=c.attention_bias,
        # Over all heads at once; their width follows hidden_size, not head_dim.
        q_norm=nn.RMSNorm(d),
        k_norm=nn.RMSNorm(kit.rounded(d, c.num_attention_heads) * runs.keys),
    )
    used = kit.experts_used(c, "num_experts")
    moe = kit.mixture(c, c.intermediate_size, used, c.num_experts, scoring="softmax", weights="own")
    return kit.decoder(c, kit.pre_norm(attends, moe, nn.RMSNorm(d)))
