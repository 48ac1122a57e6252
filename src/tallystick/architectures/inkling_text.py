"""Inkling's text model (Thinking Machines 2026): short convolutions, learned distances.

Keys, values, attention and MLP have one convolution each.
"""

from typing import NamedTuple

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional

LAYER_KINDS = ("hybrid", "hybrid_sliding")


@architecture(
    "inkling_text",
    "InklingForCausalLM",
    aliases={
        "sliding_window": "sliding_window_size",
        "num_local_experts": "n_routed_experts",
        "sconv_kernel_size": "conv_kernel_size",
    },
    vocab_size=201024,
    hidden_size=6144,
    intermediate_size=24576,
    dense_intermediate_size=optional(),
    moe_intermediate_size=3072,
    num_hidden_layers=66,
    layer_types=None,
    local_layer_ids=None,
    mlp_layer_types=None,
    dense_mlp_idx=nonnegative(),
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=128,
    swa_num_attention_heads=64,
    swa_num_key_value_heads=16,
    swa_head_dim=128,
    sliding_window_size=512,
    d_rel=16,
    rel_extent=1024,
    conv_kernel_size=4,
    n_shared_experts=nonnegative(2),
    n_routed_experts=256,
    num_experts_per_tok=6,
)
def inkling_text(c: Config) -> nn.Model:
    dense = int(c.dense_mlp_idx)
    feeds = kit.listed(c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer >= dense])
    return without_tie(c, kit.in_turns(zip(_kinds(c), feeds, strict=True), lambda *kinds: _block(c, *kinds)))


def without_tie(c: Config, layers: nn.ModuleList, **extras: nn.Node) -> nn.Model:
    """Return the frame: a norm after the embedding, and an untied LM head."""
    d = c.hidden_size
    embedding = nn.Module(weight=nn.Parameter((c.vocab_size, d), "token_embedding"), embed_norm=nn.RMSNorm(d))
    return nn.Model(
        model=nn.Module(embed_tokens=embedding, layers=layers, norm=nn.RMSNorm(d), **extras),
        lm_head=nn.Head(d, c.vocab_size),
    )


def _kinds(c: Config) -> list[str]:
    """Kind of each layer: as listed, by `local_layer_ids`, or full attention in every sixth."""
    local = c.local_layer_ids
    if local is not None and not isinstance(local, list):
        raise c.refuse("local_layer_ids must list the numbers of the layers that see a window, or be null")
    return kit.listed(
        c,
        "layer_types",
        LAYER_KINDS,
        lambda layer: LAYER_KINDS[(layer + 1) % 6 != 0 if local is None else layer in local],
    )


def _block(c: Config, kind: str, feeding: str) -> nn.Module:
    d, sizes = c.hidden_size, heads_of(c, near=kind == LAYER_KINDS[1])
    return nn.Module(
        self_attn=nn.Attention(
            attends(c, sizes, near=kind == LAYER_KINDS[1]),
            **projections(c, sizes),
            k_sconv=convolution(c, sizes.keys * sizes.size),
            v_sconv=convolution(c, sizes.keys * sizes.size),
            q_norm=nn.RMSNorm(sizes.size),
            k_norm=nn.RMSNorm(sizes.size),
            kept=kept(c, sizes),
        ),
        mlp=_mixture(c) if feeding == "sparse" else _dense(c),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        attn_sconv=convolution(c, d),
        mlp_sconv=convolution(c, d),
    )


class Sizes(NamedTuple):
    """The heads of one layer, and how many distances it learns."""

    queries: int
    keys: int
    size: int
    distances: int


def heads_of(c: Config, *, near: bool) -> Sizes:
    """Return the sizes of a layer: `near` if it has a window, else full attention."""
    c.require_divisible("num_attention_heads", by="num_key_value_heads")
    c.require_divisible("swa_num_attention_heads", by="swa_num_key_value_heads")
    if near:
        return Sizes(c.swa_num_attention_heads, c.swa_num_key_value_heads, c.swa_head_dim, c.sliding_window_size)
    return Sizes(c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.rel_extent)


def attends(c: Config, sizes: Sizes, *, near: bool) -> nn.Heads:
    """Return the heads, without rotary positions."""
    window = c.sliding_window_size if near else None
    return nn.Heads(sizes.queries, sizes.keys, sizes.size, rotary=0, windows=((window, 1),))


def kept(c: Config, sizes: Sizes) -> nn.Scan:
    """Return the cached state: the last inputs of the layer's four convolutions."""
    widths = 2 * sizes.keys * sizes.size + 2 * c.hidden_size
    source = "Thinking Machines 2026, Inkling"
    return nn.Scan(nn.Recurrence(inputs=widths * c.conv_kernel_size, state=0, source=source, wide_inputs=True))


def projections(c: Config, sizes: Sizes) -> dict[str, nn.Node]:
    """Return the projections of attention, and of relative distance logits per query head."""
    d, queries, keys = c.hidden_size, sizes.queries * sizes.size, sizes.keys * sizes.size
    weighs = c.d_rel * sizes.distances  # multiplications per query head
    return {
        "q_proj": nn.Linear(d, queries, bias=False),
        "k_proj": nn.Linear(d, keys, bias=False),
        "v_proj": nn.Linear(d, keys, bias=False),
        "r_proj": nn.Linear(d, sizes.queries * c.d_rel, bias=False),
        "o_proj": nn.Linear(queries, d, bias=False),
        "rel_logits_proj": nn.TokenMixer((sizes.queries - 1) * weighs, proj=nn.Parameter((c.d_rel, sizes.distances))),
    }


def convolution(c: Config, width: int) -> nn.Module:
    """Return a depthwise causal convolution."""
    return nn.Module(conv1d=nn.Module(weight=nn.Parameter((width, 1, c.conv_kernel_size), "conv")))


def _dense(c: Config) -> nn.MLP:
    inner = c.dense_intermediate_size or c.intermediate_size
    return nn.MLP(**kit.gated_mlp(c.hidden_size, inner).children, global_scale=nn.Parameter((1,)))


def _mixture(c: Config) -> nn.Module:
    """Routed and shared experts, all scored by the router; checkpoints stack them."""
    # If dense_intermediate_size is stated, intermediate_size is the experts' width.
    inner = c.moe_intermediate_size if c.dense_intermediate_size is None else c.intermediate_size
    d, of, shared = c.hidden_size, c.n_routed_experts, c.n_shared_experts
    used = kit.experts_used(c, "n_routed_experts")
    side = nn.Parameter((shared, inner, d))
    scores = kit.router(d, None, of + shared, global_scale=nn.Parameter((1,)), e_score_correction_bias=nn.Buffer(of))
    return nn.Module(
        gate=scores,
        experts=nn.Experts(
            used, of, gate_up_proj=nn.Parameter((of, 2 * inner, d)), down_proj=nn.Parameter((of, d, inner))
        ),
        shared_experts=nn.MLP(gate_proj=side, up_proj=side, down_proj=nn.Parameter((shared, d, inner))),
    )
