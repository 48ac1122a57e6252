"""Hybrid Ling and Ring (Ant Group): delta attention, and gated MLA once per layer group."""

from tallystick.architectures import kit
from tallystick.architectures.kimi_linear import MLPS, delta_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional

OUTPUT = {"o_proj": "dense"}  # the name in checkpoints


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
    first_k_dense_replace=nonnegative(2),
    num_attention_heads=32,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    head_dim=128,
    short_conv_kernel_size=4,
    linear_num_heads=optional(),
    linear_head_dim=optional(),
    linear_conv_kernel_dim=optional(),
    n_shared_experts=nonnegative(1),
    num_local_experts=512,
    num_experts_per_tok=8,
    attention_bias=False,
)
def bailing_hybrid(c: Config) -> nn.Model:
    mixers = kit.listed(
        c,
        "layer_types",
        (kit.LINEAR, kit.FULL),
        lambda layer: kit.FULL if (layer + 1) % int(c.layer_group_size) == 0 else kit.LINEAR,
    )
    mlps = kit.listed(c, "mlp_layer_types", MLPS, lambda layer: MLPS[layer >= c.first_k_dense_replace])
    layers = kit.in_turns(
        zip(mixers, mlps, strict=True), lambda mixer, mlp: _block(c, full=mixer == kit.FULL, sparse=mlp == "sparse")
    )
    return kit.frame(c, layers, embedding="word_embeddings" if c.published else "embed_tokens", norm="norm", tied=False)


def _block(c: Config, *, full: bool, sparse: bool) -> nn.Module:
    d = c.hidden_size
    return nn.Module(
        **{"attention" if c.published else "self_attn": _attention(c) if full else _delta(c)},
        mlp=_mixture(c) if sparse else kit.gated_mlp(d, c.intermediate_size),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )


def _mixture(c: Config) -> nn.Module:
    of, inner = c.num_local_experts, c.moe_intermediate_size
    return kit.mixture(
        c,
        inner,
        kit.experts_used(c, "num_local_experts"),
        of,
        scores=kit.as_published(c, {"e_score_correction_bias": "expert_bias"}, e_score_correction_bias=nn.Buffer(of)),
        shared_experts=kit.gated_mlp(c.hidden_size, inner * c.n_shared_experts),
    )


def _attention(c: Config) -> nn.Attention:
    """DeepSeek's latent attention without low-rank queries; a gate scales each head."""
    d, count, given = c.hidden_size, c.num_attention_heads, c.num_attention_heads * c.v_head_dim
    size, kept = c.qk_nope_head_dim + c.qk_rope_head_dim, c.kv_lora_rank + c.qk_rope_head_dim
    return nn.Attention(
        nn.Heads(count, count, size, c.v_head_dim, latent=kept, rotary=c.qk_rope_head_dim),
        q_proj=nn.Linear(d, count * size, bias=False),
        kv_a_proj_with_mqa=nn.Linear(d, kept, bias=c.attention_bias),
        kv_a_layernorm=nn.RMSNorm(c.kv_lora_rank),
        kv_b_proj=nn.Linear(c.kv_lora_rank, count * (c.qk_nope_head_dim + c.v_head_dim), bias=False),
        g_proj=nn.Linear(d, count, bias=False),
        **kit.as_published(c, OUTPUT, o_proj=nn.Linear(given, d, bias=c.attention_bias)),
    )


def _delta(c: Config) -> nn.Scan:
    """Kimi's delta attention; decay and output gates are full-rank projections of the token."""
    d, count, size = c.hidden_size, c.linear_num_heads or c.num_attention_heads, c.linear_head_dim or c.head_dim
    inner = count * size
    forgets: dict[str, nn.Node] = {
        "A_log": nn.Parameter((count,)),
        "dt_bias": nn.Parameter((inner,)),
        "f_proj": nn.Linear(d, inner, bias=False),
    }
    kernel = c.linear_conv_kernel_dim or c.short_conv_kernel_size
    return delta_attention(
        c,
        count,
        size,
        kernel,
        forgets,
        output=OUTPUT["o_proj"] if c.published else "o_proj",
        g_proj=nn.Linear(d, inner, bias=False),
    )
