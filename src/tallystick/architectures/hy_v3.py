"""Hy3 (Tencent Hunyuan 2026): grouped heads with norms, and experts beside one shared."""

from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    mixture,
    pre_norm,
)
from tallystick.architectures._layers import as_published, dense_and_sparse
from tallystick.blueprint import Config, Group, Model, RMSNorm, Tensor, architecture, natural


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
    num_shared_experts=natural(1),
    num_experts=192,
    num_experts_per_tok=8,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hy_v3(c: Config) -> Model:
    d, norm, runs = c.hidden_size, RMSNorm(c.hidden_size), heads(c)
    attends = attention(c, runs, bias=c.attention_bias, **head_norms(runs))
    dense = gated_mlp(d, c.intermediate_size, bias=c.mlp_bias)
    return decoder(c, dense_and_sparse(c, 1, pre_norm(attends, dense, norm), pre_norm(attends, _mixture(c), norm)))


def _mixture(c: Config) -> Group:
    """Experts chosen by sigmoids and a bias; where no expert is shared, a whole MLP stands in its place."""
    inner, of = c.moe_intermediate_size, c.num_experts
    shared = gated_mlp(c.hidden_size, inner * c.num_shared_experts or c.intermediate_size, bias=c.mlp_bias)
    bias = Tensor((of,), "router", buffer=True)
    beside = as_published(
        c,
        {"shared_experts": "shared_mlp", "e_score_correction_bias": "expert_bias"},
        shared_experts=shared,
        e_score_correction_bias=bias,
    )
    under = "router.gate" if c.published else "gate"
    return mixture(c, inner, experts_used(c, "num_experts"), of, under=under, **beside)
