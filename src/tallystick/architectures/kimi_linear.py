"""Kimi Linear: delta attention (KDA), and MLA in every fourth layer.

Source: Moonshot AI 2025, "Kimi Linear: An Expressive, Efficient Attention Architecture".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.architectures.olmo_hybrid import short_convs
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture, nonnegative, optional

MLPS = ("dense", "sparse")
# Keys of published configs' linear_attn_config, and transformers' keys for the same values.
KEYS = {
    "num_heads": "linear_num_heads",
    "head_dim": "linear_head_dim",
    "short_conv_kernel_size": "linear_conv_kernel_dim",
}
PART = NestedConfig({**dict.fromkeys(KEYS, optional()), "full_attn_layers": None, "kda_layers": None}, optional=True)


@architecture(
    "kimi_linear",
    "KimiLinearForCausalLM",
    running={"hidden_act": "silu"},
    aliases={
        "num_experts": "num_local_experts",
        "num_experts_per_token": "num_experts_per_tok",
        "num_shared_experts": "n_shared_experts",
    },
    vocab_size=163840,
    hidden_size=2304,
    intermediate_size=9216,
    moe_intermediate_size=1024,
    num_hidden_layers=27,
    layer_types=None,
    mlp_layer_types=None,
    first_k_dense_replace=nonnegative(1),
    num_attention_heads=32,
    q_lora_rank=optional(),
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    linear_num_heads=32,
    linear_head_dim=128,
    linear_conv_kernel_dim=4,
    n_shared_experts=nonnegative(1),
    num_local_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    parts={"linear_attn_config": PART},
)
def kimi_linear(c: Config) -> nn.Model:
    mixers, mlps = (
        _mixers(c),
        kit.listed(c, "mlp_layer_types", MLPS, lambda layer: MLPS[layer >= c.first_k_dense_replace]),
    )
    layers = kit.in_turns(
        zip(mixers, mlps, strict=True), lambda mixer, mlp: _block(c, full=mixer == kit.FULL, sparse=mlp == "sparse")
    )
    return kit.frame(c, layers, norm="norm", tied=False)


def _mixers(c: Config) -> list[str]:
    """Mixer of each layer: as listed, by layer numbers (from 1), or MLA in every fourth layer."""
    stated = c.part("linear_attn_config")
    attending, others = stated.full_attn_layers, stated.kda_layers
    if c.layer_types is not None or attending is None or others is None:
        return kit.listed(
            c, "layer_types", (kit.LINEAR, kit.FULL), lambda layer: kit.FULL if layer and layer % 4 == 0 else kit.LINEAR
        )
    count = kit.listable(c)
    for numbers in (attending, others):
        if not isinstance(numbers, list) or not all(type(one) is int and 1 <= one <= count for one in numbers):
            raise c.refuse(f"linear_attn_config must list numbers of the {count} layers, from 1 on")
    full = set(attending) - set(others)
    return [kit.FULL if number in full else kit.LINEAR for number in range(1, count + 1)]


def _block(c: Config, *, full: bool, sparse: bool) -> nn.Module:
    d = c.hidden_size
    mlp = "block_sparse_moe" if c.published and sparse else "mlp"
    return nn.Module(
        self_attn=latent_attention(c) if full else _delta(c),
        **{mlp: _mixture(c) if sparse else kit.gated_mlp(d, c.intermediate_size)},
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )


def _mixture(c: Config) -> nn.Module:
    of = c.num_local_experts
    return kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_local_experts"),
        of,
        names=kit.NUMBERED,
        scores={"e_score_correction_bias": nn.Buffer(of)},
        shared_experts=kit.gated_mlp(c.hidden_size, c.moe_intermediate_size * c.n_shared_experts),
    )


def _delta(c: Config) -> nn.Scan:
    """Kimi Delta Attention with low-rank decay and output gates."""
    stated = c.part("linear_attn_config")
    count, size, kernel = (getattr(stated, of) or getattr(c, key) for of, key in KEYS.items())
    d, inner = c.hidden_size, count * size
    forgets: dict[str, nn.Node] = {
        "f_a_proj": nn.Linear(d, size, bias=False),
        "f_b_proj": nn.Linear(size, inner, bias=False),
        "dt_bias": nn.Parameter((inner,)),
        "A_log": nn.Parameter((1, 1, count, 1)),
    }
    return delta_attention(
        c,
        count,
        size,
        kernel,
        forgets,
        g_a_proj=nn.Linear(d, size, bias=False),
        g_b_proj=nn.Linear(size, inner, bias=False),
    )


def delta_attention(
    c: Config,
    count: int,
    size: int,
    kernel: int,
    forgets: dict[str, nn.Node],
    *,
    output: str = "o_proj",
    **gate: nn.Module,
) -> nn.Scan:
    """Return delta attention: per head a state of keys × values that decays per channel.

    Args:
        c: the config.
        count: the number of heads.
        size: elements of a key, and of a value, in one head.
        kernel: tokens that the convolutions read.
        forgets: the modules of the decay gate; checkpoints hold them directly in the layer.
        output: the name of the output projection.
        gate: the modules of the output gate.
    """
    d, inner = c.hidden_size, count * size
    return nn.Scan(
        nn.Recurrence(
            inputs=3 * inner * kernel,
            state=inner * size,
            source="Moonshot AI 2025, Kimi Linear, section 3",
        ),
        q_proj=nn.Linear(d, inner, bias=False),
        k_proj=nn.Linear(d, inner, bias=False),
        v_proj=nn.Linear(d, inner, bias=False),
        **short_convs(c, kernel, inner, inner, inner),
        **(forgets if c.published else {"forget_gate": nn.Module(**forgets)}),
        b_proj=nn.Linear(d, count, bias=False),
        **gate,
        o_norm=nn.RMSNorm(size),
        **{output: nn.Linear(inner, d, bias=False)},
    )
