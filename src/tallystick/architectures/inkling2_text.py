"""Inkling 2 without its eyes (Thinking Machines 2026): each part reads what earlier blocks gave, by a query of its own."""

from itertools import repeat

from tallystick.architectures._decoder import experts_used, mixture
from tallystick.architectures._layers import in_turns, listed
from tallystick.architectures.inkling_text import (
    KINDS,
    Sizes,
    attends,
    convolution,
    heads_of,
    kept,
    projections,
    without_tie,
)
from tallystick.blueprint import (
    Attention,
    Buffer,
    Config,
    Group,
    Linear,
    Model,
    RMSNorm,
    Tensor,
    architecture,
)


@architecture(
    "inkling2_text",
    "Inkling2ForCausalLM",
    aliases={
        "sliding_window": "sliding_window_size",
        "num_local_experts": "n_routed_experts",
        "sconv_kernel_size": "conv_kernel_size",
        "intermediate_size": "moe_intermediate_size",
    },
    vocab_size=201024,
    hidden_size=4608,
    moe_intermediate_size=2304,
    num_hidden_layers=48,
    layer_types=None,
    num_attention_heads=48,
    num_key_value_heads=8,
    head_dim=128,
    swa_num_attention_heads=48,
    swa_num_key_value_heads=8,
    swa_head_dim=128,
    sliding_window_size=1024,
    d_rel=16,
    rel_extent=1024,
    conv_kernel_size=4,
    n_routed_experts=384,
    num_experts_per_tok=8,
)
def inkling2_text(c: Config) -> Model:
    kinds = listed(c, "layer_types", KINDS, lambda layer: KINDS[(layer + 1) % 6 != 0])
    behind = [False, *repeat(True, len(kinds) - 1)]  # before the first layer there is nothing to read from
    layers = in_turns(
        zip(kinds, behind, strict=True), lambda kind, reads: _block(c, near=kind == KINDS[1], reads=reads)
    )
    model = without_tie(c, layers, final_input=_reading(c))
    model.irregular = "what weighs the blocks before multiplies it with each of them"
    return model


def _reading(c: Config, queries: int = 1) -> Group:
    """What weighs the blocks before, for queries, keys and values at once or each on its own."""
    return Group(query=Tensor((queries, c.hidden_size) if queries > 1 else (c.hidden_size,)))


def _block(c: Config, *, near: bool, reads: bool) -> Group:
    """Where all is seen, queries, keys and values each read on their own, behind a norm of their own."""
    d, queries = c.hidden_size, 1 if near else 3
    norms = ("input",) if near else ("q_input", "k_input", "v_input")
    return Group(
        attention_input=_reading(c, queries) if reads else None,
        mlp_input=_reading(c),
        self_attn=_attention(c, near=near),
        mlp=_mixture(c),
        **{f"{norm}_layernorm": RMSNorm(d) for norm in norms},
        post_attention_layernorm=RMSNorm(d),
        post_attention_convolution=convolution(c, d),
        post_mlp_convolution=convolution(c, d),
    )


def _attention(c: Config, *, near: bool) -> Attention:
    """Inkling's, with a gate of what heads give, sinks that the token sets, and bounds on queries and distances."""
    d, sizes = c.hidden_size, heads_of(c, near=near)
    mixing = convolution(c, sizes.keys * sizes.size) if near else _moving_convolution(c, sizes)
    return Attention(
        attends(c, sizes, near=near),
        **projections(c, sizes),
        k_sconv=mixing,
        v_sconv=mixing,
        gate_proj=Linear(d, sizes.queries * sizes.size, bias=False),
        sink_proj=Linear(d, sizes.queries, bias=False),
        q_l2_clip=Group(scale=Tensor((sizes.queries, sizes.size))),
        rel_l2_clip=Group(scale=Tensor((sizes.queries, c.d_rel))),
        kept=kept(c, sizes),
    )


def _moving_convolution(c: Config, sizes: Sizes) -> Group:
    """A short convolution, to whose weights the token adds some for each head."""
    taps = c.conv_kernel_size
    return Group(
        static_weight=Tensor((taps, sizes.keys * sizes.size), "conv"),
        weight_proj=Group(weight=Tensor((sizes.keys * taps, c.hidden_size), "conv")),
    )


def _mixture(c: Config) -> Group:
    used, of = experts_used(c, "n_routed_experts"), c.n_routed_experts
    bias = {"e_score_correction_bias": Buffer(of)}
    return mixture(c, c.moe_intermediate_size, used, of, names=None, scores=bias)
