"""Gemma 4's text model (Gemma Team 2026): wider global heads, shared keys and values, PLE.

Full-attention layers have other head sizes than window layers. Layers can have their own token
embeddings (per-layer embeddings, PLE), and experts.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.gemma3n_text import borrowing
from tallystick.core import nodes as nn
from tallystick.core.config import OWN_SIZES
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

NEAR, FULL = "sliding_attention", "full_attention"
PATTERN = 6  # every sixth layer has full attention, the others a window
OF_HEADS = ("num_key_value_heads", "head_dim")
BY_KIND = "by kind"  # head sizes come from the kind of layer, not from `per_layer_config`

KEYS: dict[str, Any] = {
    "vocab_size": 262144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "layer_types": None,
    "num_kv_shared_layers": nonnegative(),
    "use_double_wide_mlp": False,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_global_key_value_heads": optional(),
    "head_dim": 256,
    "global_head_dim": 512,
    OWN_SIZES: BY_KIND,
    "attention_k_eq_v": False,
    "attention_bias": False,
    "tie_word_embeddings": True,
}
RUNNING = {"sliding_window": nonnegative(512), "use_bidirectional_attention": None, "final_logit_softcapping": None}


@architecture(
    "gemma4_text",
    "Gemma4ForCausalLM",
    running=RUNNING,
    **KEYS,
    vocab_size_per_layer_input=262144,
    hidden_size_per_layer_input=nonnegative(256),
    enable_moe_block=False,
    num_experts=optional(),
    top_k_experts=optional(),
    moe_intermediate_size=optional(),
)
def gemma4_text(c: Config) -> nn.Model:
    d, each, layers = c.hidden_size, c.hidden_size_per_layer_input, c.num_hidden_layers
    experts = _experts(c) if c.enable_moe_block else {}
    if not each:
        return of_two_kinds(c, experts)
    own = {
        "per_layer_input_gate": nn.Linear(d, each, bias=False),
        "per_layer_projection": nn.Linear(each, d, bias=False),
        "post_per_layer_input_norm": _norm(d),
    }
    return of_two_kinds(
        c,
        {**own, **experts},
        embed_tokens_per_layer=nn.Embedding(c.vocab_size_per_layer_input, layers * each),
        per_layer_model_projection=nn.Linear(d, layers * each, bias=False),
        per_layer_projection_norm=_norm(each),
    )


def of_two_kinds(c: Config, more: Mapping[str, nn.Node], **extras: nn.Module) -> nn.Model:
    """Return the model with window layers and full-attention layers.

    Args:
        c: the config.
        more: further children of each layer.
        extras: further children of ``model``.
    """
    kinds = _kinds(c)
    sizes = _sizes(c, kinds)
    runs = [(kind, len(list(run))) for kind, run in groupby(zip(kinds, borrowing(c, kinds), strict=True))]
    blocks = {kind: _block(c, sizes[kind[0]], *kind, more) for kind in {kind for kind, _ in runs}}
    layers = nn.ModuleList(*((count, blocks[kind]) for kind, count in runs))
    capped = bool(c.final_logit_softcapping)
    return kit.decoder(c, layers, _norm(c.hidden_size), capped=capped, head_bias=False, **extras)


def _norm(width: int) -> nn.Module:
    return nn.RMSNorm(width, kind="rms32")


def _kinds(c: Config) -> list[str]:
    """Kind of each layer; the last one always has full attention."""
    count, listed = int(c.num_hidden_layers), c.layer_types
    if listed is None:
        listed = [FULL if (layer + 1) % PATTERN == 0 else NEAR for layer in range(kit.listable(c))]
    if not isinstance(listed, list) or len(listed) != count or not all(kind in (NEAR, FULL) for kind in listed):
        raise c.refuse(f"layer_types must list {NEAR} or {FULL} for each of the {count} layers")
    return [*listed[:-1], FULL]


def _sizes(c: Config, kinds: list[str]) -> dict[str, tuple[int, int]]:
    """Key/value heads and head size of each kind of layer."""
    stated = getattr(c, OWN_SIZES)
    if stated == BY_KIND:
        keys = c.num_global_key_value_heads if c.attention_k_eq_v else None
        full = (keys or c.num_key_value_heads, c.global_head_dim)
        return {NEAR: (c.num_key_value_heads, c.head_dim), FULL: full}
    c.refuse_own_sizes(but=OF_HEADS)
    own = _by_layer(c, stated, len(kinds))
    return {
        kind: _stated_size(c, kind, [own.get(n, {}) for n, other in enumerate(kinds) if other == kind])
        for kind in kinds
    }


def _by_layer(c: Config, stated: object, count: int) -> dict[int, Mapping[str, Any]]:
    """Entries of `per_layer_config` by layer; null: none."""
    if stated is None:
        return {}
    if not isinstance(stated, Mapping) or not all(isinstance(own, Mapping) for own in stated.values()):
        raise c.refuse(f"{OWN_SIZES} is {shown(stated)}, expected an object of objects, by the numbers of layers")
    for number in stated:
        if not str(number).isdecimal() or int(number) >= count:
            raise c.refuse(f"{OWN_SIZES} names layer {shown(number)}, expected a number below {count}")
    return {int(number): own for number, own in stated.items()}


def _stated_size(c: Config, kind: str, layers: list[Mapping[str, Any]]) -> tuple[int, int]:
    """Head sizes of one kind of layer; rotary positions require them to be equal."""
    sizes = []
    for key in OF_HEADS:
        value, *others = [own.get(key, getattr(c, key)) for own in layers]
        if any(other != value for other in others):
            raise c.refuse(f"{OWN_SIZES} gives layers of one kind, {kind}, their own {key}, which cannot be counted")
        prefix = "global" if kind == FULL else "sliding"
        sizes.append(getattr(c, key) if value == getattr(c, key) else c.size(f"{prefix}_{key}", value))
    return sizes[0], sizes[1]


def _block(c: Config, sizes: tuple[int, int], kind: str, borrowed: bool, more: Mapping[str, nn.Node]) -> nn.Module:
    d, norm = c.hidden_size, _norm(c.hidden_size)
    inner = 2 * c.intermediate_size if borrowed and c.use_double_wide_mlp else c.intermediate_size
    return nn.Module(
        self_attn=_attention(c, *sizes, kind=kind, borrowed=borrowed),
        mlp=kit.gated_mlp(d, inner),  # no runtime info: activations of the block are not modelled
        input_layernorm=norm,
        post_attention_layernorm=norm,
        pre_feedforward_layernorm=norm,
        post_feedforward_layernorm=norm,
        layer_scalar=nn.Buffer(1),
        **more,
    )


def _attention(c: Config, keys: int, size: int, *, kind: str, borrowed: bool) -> nn.Attention:
    """Attention; full-attention layers may reuse keys as values. The value norm has no scale."""
    if int(c.num_attention_heads) % int(keys):
        raise c.refuse(
            f"num_attention_heads = {int(c.num_attention_heads)} is not divisible by num_key_value_heads = {int(keys)}",
            code="indivisible",
        )
    windows = nn.EVERYTHING if kind == FULL else ((_window(c), 1),)
    runs = nn.Heads(c.num_attention_heads, keys, size, windows=windows, shares_kv=borrowed)
    bias = c.attention_bias
    attends = kit.attention(c, runs, bias=bias, q_norm=_norm(size), k_norm=_norm(size))
    without = ("k_proj", "v_proj", "k_norm") if borrowed else ("v_proj",) if c.attention_k_eq_v and kind == FULL else ()
    return attends.with_children(**dict.fromkeys(without))


def _window(c: Config) -> int:
    """The window, in tokens; a bidirectional window looks back by half."""
    window: int = c.sliding_window
    return int(window) // 2 + 1 if c.use_bidirectional_attention == "all" else window


def _experts(c: Config) -> dict[str, nn.Node]:
    """Modules of a MoE layer, in addition to its dense MLP."""
    d, of, inner = c.hidden_size, c.num_experts, c.moe_intermediate_size
    for key in ("num_experts", "moe_intermediate_size"):
        if getattr(c, key) is None:
            raise c.refuse(f"enable_moe_block needs {key}")
    used = kit.experts_used(c, "num_experts", "top_k_experts") if c.top_k_experts else of
    scores = {"scale": nn.Parameter((d,)), "per_expert_scale": nn.Parameter((of,))}
    return {
        "router": nn.Router(None, proj=nn.Linear(d, of, bias=False), **scores),
        "experts": nn.Experts(
            used, of, gate_up_proj=nn.Parameter((of, 2 * inner, d)), down_proj=nn.Parameter((of, d, inner))
        ),
        "post_feedforward_layernorm_1": _norm(d),
        "post_feedforward_layernorm_2": _norm(d),
        "pre_feedforward_layernorm_2": _norm(d),
    }
