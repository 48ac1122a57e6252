"""Hy3 (Tencent Hunyuan 2026): grouped-query attention with QK norm, a shared expert."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "hy_v3",
    "HYV3ForCausalLM",
    aliases={"num_local_experts": "num_experts"},
    vocab_size=120832,
    hidden_size=4096,
    intermediate_size=13312,
    moe_intermediate_size=1536,
    num_hidden_layers=80,
    mlp_layer_types=None,
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=128,
    num_shared_experts=nonnegative(1),
    num_experts=192,
    num_experts_per_tok=8,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hy_v3(c: Config) -> nn.Model:
    d, norm, runs = c.hidden_size, nn.RMSNorm(c.hidden_size), kit.heads(c)
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs))
    dense = kit.gated_mlp(d, c.intermediate_size, bias=c.mlp_bias)
    return kit.decoder(
        c, kit.dense_and_sparse(c, 1, kit.pre_norm(attends, dense, norm), kit.pre_norm(attends, _mixture(c), norm))
    )


def _mixture(c: Config) -> nn.Module:
    """Sigmoid-routed experts with a bias; without shared experts, a dense MLP takes their place."""
    inner, of = c.moe_intermediate_size, c.num_experts
    shared = kit.gated_mlp(c.hidden_size, inner * c.num_shared_experts or c.intermediate_size, bias=c.mlp_bias)
    bias = nn.Buffer(of, role="router")
    extras = kit.as_published(
        c,
        {"shared_experts": "shared_mlp", "e_score_correction_bias": "expert_bias"},
        shared_experts=shared,
        e_score_correction_bias=bias,
    )
    under = "router.gate" if c.published else "gate"
    return kit.mixture(c, inner, kit.experts_used(c, "num_experts"), of, under=under, **extras)
