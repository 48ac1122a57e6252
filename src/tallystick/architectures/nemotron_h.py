"""Nemotron-H and Nemotron 3: each layer is Mamba 2, attention, an MLP or experts.

Source: NVIDIA 2025, "Nemotron-H".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import mamba2
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

PATTERN = {"M": kit.LINEAR, "*": kit.FULL, "E": "moe", "-": "mlp"}  # hybrid_override_pattern of published configs


@architecture(
    "nemotron_h",
    "NemotronHForCausalLM",
    running={"chunk_size": nonnegative(128)},
    aliases={
        "layer_types": "layers_block_type",
        "num_local_experts": "n_routed_experts",
        "mamba_n_groups": "n_groups",
        "mamba_d_conv": "conv_kernel",
        "mamba_conv_bias": "use_conv_bias",
        "mamba_chunk_size": "chunk_size",
    },
    vocab_size=131072,
    hidden_size=4096,
    layers_block_type=None,
    hybrid_override_pattern=None,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    mamba_num_heads=128,
    mamba_head_dim=64,
    n_groups=8,
    ssm_state_size=128,
    conv_kernel=4,
    use_conv_bias=True,
    use_bias=False,
    intermediate_size=21504,
    mlp_bias=False,
    n_routed_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=7688,
    moe_shared_expert_intermediate_size=7688,
    moe_latent_size=optional(),
)
def nemotron_h(c: Config) -> nn.Model:
    layers = kit.in_turns(_kinds(c), lambda kind: nn.Module(norm=nn.RMSNorm(c.hidden_size), mixer=_mixer(c, kind)))
    under = "backbone" if c.published else "model"
    return kit.frame(c, layers, under=under, embedding="embeddings", norm="norm_f", tied=False)


def _kinds(c: Config) -> list[str]:
    """Kind of each layer: as listed, from the pattern, or by default one layer of each kind."""
    if c.layers_block_type is not None:
        return kit.checked(c, "layers_block_type", c.layers_block_type, tuple(PATTERN.values()))
    pattern = c.hybrid_override_pattern
    if pattern is None:
        return [kit.LINEAR, "moe", kit.FULL, "mlp"]
    if not isinstance(pattern, str) or not set(pattern) <= set(PATTERN):
        raise c.refuse(
            f"hybrid_override_pattern is {shown(pattern)}, expected a letter of {''.join(PATTERN)} for each layer"
        )
    return [PATTERN[letter] for letter in pattern]


def _mixer(c: Config, kind: str) -> nn.Module:
    d = c.hidden_size
    if kind == kit.LINEAR:
        return mamba2(
            d,
            c.mamba_num_heads * c.mamba_head_dim,
            c.mamba_num_heads,
            groups=c.n_groups,
            rows=c.ssm_state_size,
            kernel=c.conv_kernel,
            chunk=c.chunk_size,
            conv_bias=c.use_conv_bias,
            bias=c.use_bias,
        )
    if kind == kit.FULL:
        return kit.attention(c, kit.heads(c))
    return _mlp(c, c.intermediate_size) if kind == "mlp" else _mixture(c)


def _mlp(c: Config, inner: int) -> nn.MLP:
    d, bias = c.hidden_size, c.mlp_bias
    return nn.MLP(up_proj=nn.Linear(d, inner, bias=bias), down_proj=nn.Linear(inner, d, bias=bias))


def _mixture(c: Config) -> nn.Module:
    """Ungated experts and a shared one; routed experts may read a low-rank token (latent MoE)."""
    d, narrow, of = c.hidden_size, c.moe_latent_size, c.n_routed_experts
    through = {"fc1_latent_proj": (d, narrow), "fc2_latent_proj": (narrow, d)} if narrow else {}
    return nn.Module(
        experts=_experts(c, narrow or d, kit.experts_used(c, "n_routed_experts"), of),
        gate=kit.router(d, None, of, e_score_correction_bias=nn.Buffer(of)),
        shared_experts=_mlp(c, c.moe_shared_expert_intermediate_size),
        **{name: nn.MLP(**nn.Linear(*sizes, bias=c.mlp_bias).children) for name, sizes in through.items()},
    )


def _experts(c: Config, reads: int, used: int, of: int) -> nn.Node:
    inner = c.moe_intermediate_size
    if c.published:
        expert = nn.Module(up_proj=nn.Linear(reads, inner, bias=False), down_proj=nn.Linear(inner, reads, bias=False))
        return nn.ExpertList(used, of, expert)
    return nn.Experts(used, of, up_proj=nn.Parameter((of, inner, reads)), down_proj=nn.Parameter((of, reads, inner)))
