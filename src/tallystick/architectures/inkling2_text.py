"""Inkling 2's text model (Thinking Machines 2026): sublayers attend over previous blocks.

A learned query per sublayer weighs the outputs of previous blocks.
"""

from collections.abc import Sequence
from itertools import groupby, repeat

from tallystick.architectures import kit
from tallystick.architectures.inkling_text import (
    LAYER_KINDS,
    Sizes,
    attends,
    convolution,
    heads_of,
    kept,
    projections,
    without_tie,
)
from tallystick.architectures.kit.variants import BARE
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

# Names in checkpoints.
FILED = {
    "self_attn": "attn",
    "q_proj": "wq_du",
    "k_proj": "wk_dv",
    "v_proj": "wv_dv",
    "r_proj": "wr_du",
    "o_proj": "wo_ud",
    "gate_proj": "gate_attn",
    "sink_proj": "attn_sink_proj",
    "static_weight": "static_w",
    "input_layernorm": "attn_norm",
    "q_input_layernorm": "q_input_norm",
    "k_input_layernorm": "k_input_norm",
    "v_input_layernorm": "v_input_norm",
    "post_attention_layernorm": "mlp_norm",
    "post_attention_convolution": "attn_sconv",
    "post_mlp_convolution": "mlp_sconv",
    "e_score_correction_bias": "bias",
}
IRREGULAR = "the weights of earlier blocks multiply each of them"


@architecture(
    "inkling2_text",
    "Inkling2ForCausalLM",
    variants=BARE,
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
def inkling2_text(c: Config) -> nn.Model:
    kinds = kit.listed(c, "layer_types", LAYER_KINDS, lambda layer: LAYER_KINDS[(layer + 1) % 6 != 0])
    behind = [False, *repeat(True, len(kinds) - 1)]  # the first layer has no previous block
    layers = kit.in_turns(
        zip(kinds, behind, strict=True), lambda kind, reads: _block(c, near=kind == LAYER_KINDS[1], reads=reads)
    )
    if c.published:
        return _as_filed(c, layers, kinds)
    return without_tie(c, layers, final_input=nn.Module(query=_query(c))).replace(irregular=IRREGULAR)


def _as_filed(c: Config, layers: nn.ModuleList, kinds: Sequence[str]) -> nn.Model:
    """The model as checkpoints name it: all block queries in `attn_res`, the head in the body."""
    d = c.hidden_size
    before = [(len(list(run)), _query(c, near=kind == LAYER_KINDS[1])) for kind, run in groupby(kinds[1:])]
    body = nn.Module(
        embed=nn.Module(weight=nn.Parameter((c.vocab_size, d), "token_embedding")),
        embed_norm=nn.RMSNorm(d),
        layers=layers,
        norm=nn.RMSNorm(d),
        attn_res=nn.Module(
            attn_queries=nn.ModuleList(*before) if before else None,
            mlp_queries=nn.ModuleList((len(kinds), _query(c))),
            output_query=_query(c),
        ),
        unembed=nn.Head(d, c.vocab_size) if c.headed else None,
    )
    return nn.Model(IRREGULAR, model=nn.Module(llm=body))


def _query(c: Config, *, near: bool = True) -> nn.Tensor:
    """A learned query over previous blocks; full-attention layers have one each for q, k and v."""
    return nn.Parameter((c.hidden_size,) if near else (3, c.hidden_size))


def _block(c: Config, *, near: bool, reads: bool) -> nn.Module:
    """A block; in full-attention layers q, k and v each have their own query and norm."""
    d = c.hidden_size
    norms = ("input",) if near else ("q_input", "k_input", "v_input")
    parts = kit.as_published(
        c,
        FILED,
        self_attn=_attention(c, near=near),
        mlp=_mixture(c),
        **{f"{norm}_layernorm": nn.RMSNorm(d) for norm in norms},
        post_attention_layernorm=nn.RMSNorm(d),
        post_attention_convolution=_convolution(c, d),
        post_mlp_convolution=_convolution(c, d),
    )
    if c.published:
        return nn.Module(**parts)
    reading = nn.Module(query=_query(c, near=near)) if reads else None
    return nn.Module(attention_input=reading, mlp_input=nn.Module(query=_query(c)), **parts)


def _convolution(c: Config, width: int) -> nn.Module:
    whole = convolution(c, width)
    inner = whole.children["conv1d"]
    return inner if c.published and isinstance(inner, nn.Module) else whole


def _attention(c: Config, *, near: bool) -> nn.Attention:
    """Inkling's attention with an output gate, dynamic sinks, clipped queries and distances."""
    d, sizes = c.hidden_size, heads_of(c, near=near)
    mixing = _convolution(c, sizes.keys * sizes.size) if near else _moving_convolution(c, sizes)
    parts = kit.as_published(
        c,
        FILED,
        **projections(c, sizes),
        k_sconv=mixing,
        v_sconv=mixing,
        gate_proj=nn.Linear(d, sizes.queries * sizes.size, bias=False),
        sink_proj=nn.Linear(d, sizes.queries, bias=False),
        q_l2_clip=nn.Module(scale=nn.Parameter((sizes.queries, sizes.size))),
        rel_l2_clip=nn.Module(scale=nn.Parameter((sizes.queries, c.d_rel))),
        kept=kept(c, sizes),
    )
    return nn.Attention(attends(c, sizes, near=near), **parts)


def _moving_convolution(c: Config, sizes: Sizes) -> nn.Module:
    """A short convolution whose weights have a static part and a per-head part from the token."""
    taps = c.conv_kernel_size
    moving = nn.Parameter((sizes.keys * taps, c.hidden_size), "conv")
    still = nn.Parameter((taps, sizes.keys * sizes.size), "conv")
    return nn.Module(
        **kit.as_published(c, FILED, static_weight=still),
        weight_proj=moving if c.published else nn.Module(weight=moving),
    )


def _mixture(c: Config) -> nn.Module:
    used, of = kit.experts_used(c, "n_routed_experts"), c.n_routed_experts
    d, inner = c.hidden_size, c.moe_intermediate_size
    bias = kit.as_published(c, FILED, e_score_correction_bias=nn.Buffer(of))
    mixed = kit.mixture(c, inner, used, of, names=None, scores=bias)
    if not c.published:
        return mixed
    experts = nn.Experts(used, of, w13_weight=nn.Parameter((of, 2 * inner, d)), w2_weight=nn.Parameter((of, d, inner)))
    return mixed.with_children(experts=experts)
