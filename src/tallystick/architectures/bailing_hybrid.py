"""Ling and Ring with hybrid layers (Ant Group): delta attention, and gated latent attention in each group's last layer."""

from tallystick.architectures._decoder import experts_used, frame, gated_mlp, mixture
from tallystick.architectures._layers import FULL, LINEAR, as_published, in_turns, listed
from tallystick.architectures.kimi_linear import MLPS, delta_attention
from tallystick.blueprint import (
    Attention,
    Buffer,
    Config,
    Group,
    Heads,
    Linear,
    Model,
    Node,
    RMSNorm,
    Scan,
    Tensor,
    architecture,
    maybe,
    natural,
)

OUTPUT = {"o_proj": "dense"}  # as files call it


@architecture(
    "bailing_hybrid",
    "BailingHybridForCausalLM",
    running={"hidden_act": "silu"},
    aliases={
        "num_experts": "num_local_experts",
        "num_experts_per_token": "num_experts_per_tok",
        "num_shared_experts": "n_shared_experts",
    },
    vocab_size=157184,
    hidden_size=2560,
    intermediate_size=6144,
    moe_intermediate_size=768,
    num_hidden_layers=42,
    layer_types=None,
    layer_group_size=6,
    mlp_layer_types=None,
    first_k_dense_replace=natural(2),
    num_attention_heads=32,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    head_dim=128,
    short_conv_kernel_size=4,
    linear_num_heads=maybe(),
    linear_head_dim=maybe(),
    linear_conv_kernel_dim=maybe(),
    n_shared_experts=natural(1),
    num_local_experts=512,
    num_experts_per_tok=8,
    attention_bias=False,
)
def bailing_hybrid(c: Config) -> Model:
    mixers = listed(
        c, "layer_types", (LINEAR, FULL), lambda layer: FULL if (layer + 1) % int(c.layer_group_size) == 0 else LINEAR
    )
    mlps = listed(c, "mlp_layer_types", MLPS, lambda layer: MLPS[layer >= c.first_k_dense_replace])
    layers = in_turns(
        zip(mixers, mlps, strict=True), lambda mixer, mlp: _block(c, full=mixer == FULL, sparse=mlp == "sparse")
    )
    return frame(c, layers, embedding="word_embeddings" if c.published else "embed_tokens", norm="norm", tied=False)


def _block(c: Config, *, full: bool, sparse: bool) -> Group:
    d = c.hidden_size
    return Group(
        **{"attention" if c.published else "self_attn": _attention(c) if full else _delta(c)},
        mlp=_mixture(c) if sparse else gated_mlp(d, c.intermediate_size),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )


def _mixture(c: Config) -> Group:
    of, inner = c.num_local_experts, c.moe_intermediate_size
    return mixture(
        c,
        inner,
        experts_used(c, "num_local_experts"),
        of,
        scores=as_published(c, {"e_score_correction_bias": "expert_bias"}, e_score_correction_bias=Buffer(of)),
        shared_experts=gated_mlp(c.hidden_size, inner * c.n_shared_experts),
    )


def _attention(c: Config) -> Attention:
    """DeepSeek's latent attention, its queries not narrowed; each head is scaled by a gate."""
    d, count, given = c.hidden_size, c.num_attention_heads, c.num_attention_heads * c.v_head_dim
    size, kept = c.qk_nope_head_dim + c.qk_rope_head_dim, c.kv_lora_rank + c.qk_rope_head_dim
    return Attention(
        Heads(count, count, size, c.v_head_dim, latent=kept, rotary=c.qk_rope_head_dim, joined=True),
        q_proj=Linear(d, count * size, bias=False),
        kv_a_proj_with_mqa=Linear(d, kept, bias=c.attention_bias),
        kv_a_layernorm=RMSNorm(c.kv_lora_rank),
        kv_b_proj=Linear(c.kv_lora_rank, count * (c.qk_nope_head_dim + c.v_head_dim), bias=False),
        g_proj=Linear(d, count, bias=False),
        **as_published(c, OUTPUT, o_proj=Linear(given, d, bias=c.attention_bias)),
    )


def _delta(c: Config) -> Scan:
    """Delta attention with as many heads, whose gates come from the token as it is."""
    d, count, size = c.hidden_size, c.linear_num_heads or c.num_attention_heads, c.linear_head_dim or c.head_dim
    inner = count * size
    forgets: dict[str, Node] = {
        "A_log": Tensor((count,)),
        "dt_bias": Tensor((inner,)),
        "f_proj": Linear(d, inner, bias=False),
    }
    kernel = c.linear_conv_kernel_dim or c.short_conv_kernel_size
    return delta_attention(
        c,
        count,
        size,
        kernel,
        forgets,
        output=OUTPUT["o_proj"] if c.published else "o_proj",
        g_proj=Linear(d, inner, bias=False),
    )
