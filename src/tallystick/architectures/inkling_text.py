"""Inkling without eyes and ears (Thinking Machines 2026): short convolutions in and around attention, and learned distances."""

from typing import NamedTuple

from tallystick.architectures._decoder import experts_used, gated_mlp, router
from tallystick.architectures._layers import FEED_FORWARD, in_turns, listed
from tallystick.blueprint import (
    MLP,
    Attention,
    Buffer,
    Config,
    Experts,
    Group,
    Head,
    Heads,
    Linear,
    Mixer,
    Model,
    Node,
    Recurrence,
    RMSNorm,
    Scan,
    Stack,
    Tensor,
    architecture,
    maybe,
    natural,
)

KINDS = ("hybrid", "hybrid_sliding")


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
    dense_intermediate_size=maybe(),
    moe_intermediate_size=3072,
    num_hidden_layers=66,
    layer_types=None,
    local_layer_ids=None,
    mlp_layer_types=None,
    dense_mlp_idx=natural(),
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
    n_shared_experts=natural(2),
    n_routed_experts=256,
    num_experts_per_tok=6,
)
def inkling_text(c: Config) -> Model:
    dense = int(c.dense_mlp_idx)
    feeds = listed(c, "mlp_layer_types", FEED_FORWARD, lambda layer: FEED_FORWARD[layer >= dense])
    return without_tie(c, in_turns(zip(_kinds(c), feeds, strict=True), lambda *kinds: _block(c, *kinds)))


def without_tie(c: Config, layers: Stack, **beside: Node) -> Model:
    """The frame: a norm behind the embedding, and a head that is never tied to it."""
    d = c.hidden_size
    embedding = Group(weight=Tensor((c.vocab_size, d), "token_embedding"), embed_norm=RMSNorm(d))
    return Model(
        model=Group(embed_tokens=embedding, layers=layers, norm=RMSNorm(d), **beside), lm_head=Head(d, c.vocab_size)
    )


def _kinds(c: Config) -> list[str]:
    """How far each layer sees: as listed, or all but those of `local_layer_ids`, or but every sixth, a window."""
    local = c.local_layer_ids
    if local is not None and not isinstance(local, list):
        raise c.refuse("local_layer_ids must list the numbers of the layers that see a window, or be null")
    return listed(
        c, "layer_types", KINDS, lambda layer: KINDS[(layer + 1) % 6 != 0 if local is None else layer in local]
    )


def _block(c: Config, kind: str, feeding: str) -> Group:
    d, sizes = c.hidden_size, heads_of(c, near=kind == KINDS[1])
    return Group(
        self_attn=Attention(
            attends(c, sizes, near=kind == KINDS[1]),
            **projections(c, sizes),
            k_sconv=convolution(c, sizes.keys * sizes.size),
            v_sconv=convolution(c, sizes.keys * sizes.size),
            q_norm=RMSNorm(sizes.size),
            k_norm=RMSNorm(sizes.size),
            kept=kept(c, sizes),
        ),
        mlp=_mixture(c) if feeding == "sparse" else _dense(c),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
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
    """The heads of a layer that sees a window, or of one that sees all."""
    c.require_divisible("num_attention_heads", by="num_key_value_heads")
    c.require_divisible("swa_num_attention_heads", by="swa_num_key_value_heads")
    if near:
        return Sizes(c.swa_num_attention_heads, c.swa_num_key_value_heads, c.swa_head_dim, c.sliding_window_size)
    return Sizes(c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.rel_extent)


def attends(c: Config, sizes: Sizes, *, near: bool) -> Heads:
    """How these heads run."""
    window = c.sliding_window_size if near else None
    return Heads(sizes.queries, sizes.keys, sizes.size, rotary=0, windows=((window, 1),))


def kept(c: Config, sizes: Sizes) -> Scan:
    """The last inputs of all four convolutions of a layer."""
    widths = 2 * sizes.keys * sizes.size + 2 * c.hidden_size
    source = "Thinking Machines 2026, Inkling"
    return Scan(Recurrence(inputs=widths * c.conv_kernel_size, state=0, source=source, wide_inputs=True))


def projections(c: Config, sizes: Sizes) -> dict[str, Node]:
    """Queries, keys, values and what they give; and for each head of queries, what weighs the profiles of distances."""
    d, queries, keys = c.hidden_size, sizes.queries * sizes.size, sizes.keys * sizes.size
    weighs = c.d_rel * sizes.distances  # for each head
    return {
        "q_proj": Linear(d, queries, bias=False),
        "k_proj": Linear(d, keys, bias=False),
        "v_proj": Linear(d, keys, bias=False),
        "r_proj": Linear(d, sizes.queries * c.d_rel, bias=False),
        "o_proj": Linear(queries, d, bias=False),
        "rel_logits_proj": Mixer((sizes.queries - 1) * weighs, proj=Tensor((c.d_rel, sizes.distances))),
    }


def convolution(c: Config, width: int) -> Group:
    """A short one over the last tokens, of each element on its own."""
    return Group(conv1d=Group(weight=Tensor((width, 1, c.conv_kernel_size), "conv")))


def _dense(c: Config) -> MLP:
    inner = c.dense_intermediate_size or c.intermediate_size
    return MLP(**gated_mlp(c.hidden_size, inner).children, global_scale=Tensor((1,)))


def _mixture(c: Config) -> Group:
    """Experts beside some that all tokens go through, which the router weighs too; files hold them in one."""
    # Where the width of a plain MLP has a key of its own, the other one is that of the experts.
    inner = c.moe_intermediate_size if c.dense_intermediate_size is None else c.intermediate_size
    d, of, shared = c.hidden_size, c.n_routed_experts, c.n_shared_experts
    used = experts_used(c, "n_routed_experts")
    side = Tensor((shared, inner, d))
    scores = router(d, None, of + shared, global_scale=Tensor((1,)), e_score_correction_bias=Buffer(of))
    return Group(
        gate=scores,
        experts=Experts(used, of, gate_up_proj=Tensor((of, 2 * inner, d)), down_proj=Tensor((of, d, inner))),
        shared_experts=MLP(gate_proj=side, up_proj=side, down_proj=Tensor((shared, d, inner))),
    )
