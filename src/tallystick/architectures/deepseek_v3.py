"""DeepSeek-V3 and R1: MLA and sigmoid-routed experts, without multi-token prediction.

Source: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report".
"""

from collections.abc import Mapping
from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "num_nextn_predict_layers": nonnegative(1)},
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=129280,
    hidden_size=7168,
    intermediate_size=18432,
    moe_intermediate_size=2048,
    num_hidden_layers=61,
    first_k_dense_replace=nonnegative(3),
    num_attention_heads=128,
    q_lora_rank=optional(1536),
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def deepseek_v3(c: Config) -> nn.Model:
    return kit.decoder(c, dense_first(c, sigmoid_mixture(c), latent_attention(c)))


def sigmoid_mixture(c: Config, *, scoring: str | None = "sigmoid", **extras: Any) -> nn.Module:
    """Return sigmoid-routed experts with a load-balancing bias, and shared experts.

    The bias is a buffer: a rule updates it, not a gradient.

    Args:
        c: the config.
        scoring: as in `Routing`; None: activations are not modelled.
        extras: further arguments of `kit.mixture`.
    """
    inner, of = c.moe_intermediate_size, c.n_routed_experts
    return kit.mixture(
        c,
        inner,
        kit.experts_used(c, "n_routed_experts"),
        of,
        scoring=scoring,
        scores={"e_score_correction_bias": nn.Buffer(of)},
        shared_experts=kit.gated_mlp(c.hidden_size, inner * c.n_shared_experts, c.hidden_act if scoring else None),
        **extras,
    )


def dense_first(c: Config, moe: nn.Module, attends: nn.Attention, mlp: nn.Module | None = None) -> nn.ModuleList:
    """Return a stack: the first `first_k_dense_replace` layers are dense, the others use `moe`."""
    d, dense_layers = c.hidden_size, min(c.first_k_dense_replace, c.num_hidden_layers)
    dense = mlp or kit.gated_mlp(d, c.intermediate_size, c.hidden_act)
    return nn.ModuleList(
        (dense_layers, kit.pre_norm(attends, dense, nn.RMSNorm(d))),
        (c.num_hidden_layers - dense_layers, kit.pre_norm(attends, moe, nn.RMSNorm(d))),
    )


def latent_attention(
    c: Config,
    *,
    size: int | None = None,
    values: int | None = None,
    how: Mapping[str, Any] | None = None,
    **more: Any,
) -> nn.Attention:
    """Return multi-head latent attention (MLA): low-rank keys and values.

    Queries are low-rank too if `q_lora_rank` is set.

    Args:
        c: the config.
        size: elements of one query; None: qk_nope_head_dim + qk_rope_head_dim.
        values: elements of one value; None: `v_head_dim`.
        how: fields of `Heads` that differ from DeepSeek-V3's.
        more: further children, or replacements of children of the same name.
    """
    d, heads, rank, bias = c.hidden_size, c.num_attention_heads, c.q_lora_rank, c.attention_bias
    size, values = size or c.qk_nope_head_dim + c.qk_rope_head_dim, values or c.v_head_dim
    # A cached token is its low-rank latent and the rotary key that all heads share.
    kept, turned = c.kv_lora_rank + c.qk_rope_head_dim, c.qk_rope_head_dim
    children: dict[str, nn.Node | None] = {
        "q_proj": None if rank else nn.Linear(d, heads * size, bias=False),
        "q_a_proj": nn.Linear(d, rank, bias=bias) if rank else None,
        "q_a_layernorm": nn.RMSNorm(rank) if rank else None,
        "q_b_proj": nn.Linear(rank, heads * size, bias=False) if rank else None,
        "kv_a_proj_with_mqa": nn.Linear(d, kept, bias=bias),
        "kv_a_layernorm": nn.RMSNorm(c.kv_lora_rank),
        "kv_b_proj": nn.Linear(c.kv_lora_rank, heads * (c.qk_nope_head_dim + values), bias=False),
        "o_proj": nn.Linear(heads * values, d, bias=bias),
    }
    runs = nn.Heads(heads, heads, size, values, latent=kept, rotary=turned)
    return nn.Attention(runs._replace(**(how or {})), **(children | more))
