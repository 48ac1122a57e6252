"""dots3.note's text model (Dots Studio 2026): indexed MLA, and window layers of other sizes."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.architectures.deepseek_v32 import CHOSEN, indexed_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

INDEXED, WINDOW, FULL = "indexed_attention", "sliding_attention", "full_attention"
SIZES = ("num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
SEEN = "sliding_window"
NO_SHAPES = ("num_key_value_heads", "head_dim")  # further keys that per_layer_config may state
UNSET = "unset"  # null has another meaning


@architecture(
    "dots3_note_text",
    "Dots3NoteForCausalLM",
    aliases={
        "num_local_experts": "n_routed_experts",
        "moe_shared_expert_intermediate_size": "shared_experts_intermediate_size",
        "sliding_window_size": SEEN,
    },
    running={**CHOSEN, SEEN: nonnegative(None, nullable=True)},
    vocab_size=152064,
    hidden_size=5120,
    intermediate_size=13824,
    moe_intermediate_size=1536,
    shared_experts_intermediate_size=1536,
    num_hidden_layers=46,
    layer_types=None,
    use_sliding_window=True,
    use_dsa=UNSET,
    mlp_layer_types=None,
    first_k_dense_replace=nonnegative(1),
    moe_layer_freq=None,
    per_layer_config=UNSET,
    num_attention_heads=128,
    q_lora_rank=1024,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    swa_num_attention_heads=64,
    swa_q_lora_rank=1024,
    swa_kv_lora_rank=1024,
    swa_head_dim=256,
    swa_qk_nope_head_dim=192,
    swa_qk_rope_head_dim=optional(),
    swa_v_head_dim=128,
    index_n_heads=64,
    index_head_dim=128,
    n_shared_experts=1,
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def dots3_note_text(c: Config) -> nn.Model:
    d, kinds = c.hidden_size, _kinds(c)
    attends = {kind: _attention(c, kind, sizes) for kind, sizes in _sizes(c, kinds).items()}
    feed = {"dense": kit.gated_mlp(d, c.intermediate_size), "sparse": _mixture(c)}

    def block(kind: str, feeding: str) -> nn.Module:
        return kit.pre_norm(attends[kind], feed[feeding], nn.RMSNorm(d))

    return kit.decoder(c, kit.in_turns(zip(kinds, _feeds(c), strict=True), block))


def _kinds(c: Config) -> list[str]:
    """Kind of each layer: from `layer_types`, or a pattern.

    In the pattern the first two layers and every fourth are global, the others use a window. Global
    layers use the indexer if there is one. Older configs list these as full attention. Configs with
    `per_layer_config` mean what they list.
    """
    chooses = c.use_dsa
    if chooses == UNSET:
        chooses = True if c.per_layer_config == UNSET else None
    if chooses not in (True, False, None):
        raise c.refuse(f"use_dsa is {shown(chooses)}, expected true or false, or null")
    far = FULL if chooses is False else INDEXED
    sliding = c.use_sliding_window
    kinds = kit.listed(
        c,
        "layer_types",
        (INDEXED, WINDOW, FULL),
        lambda layer: WINDOW if sliding and layer > 1 and layer % 4 != 1 else far,
    )
    return kinds if chooses is None else [kind if kind == WINDOW else far for kind in kinds]


def _feeds(c: Config) -> list[str]:
    """MLP of each layer: as listed, or by `moe_layer_freq` after the first dense layers."""
    first, every = int(c.first_k_dense_replace), 1 if c.moe_layer_freq is None else c.moe_layer_freq
    if isinstance(every, list) and len(every) >= c.num_hidden_layers:
        chosen = [bool(mark) for mark in every]
        return kit.listed(
            c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer >= first and chosen[layer]]
        )
    if type(every) is not int or every < 1:
        raise c.refuse(f"moe_layer_freq is {shown(every)}, expected a positive integer, or a 0 or 1 for each layer")
    return kit.listed(
        c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer >= first and layer % every == 0]
    )


def _sizes(c: Config, kinds: list[str]) -> dict[str, dict[str, int]]:
    """Sizes of each kind of layer: `swa_...` keys for windows, unless `per_layer_config` is set."""
    own = {key: getattr(c, key) for key in SIZES} | {SEEN: 512 if c.sliding_window is None else c.sliding_window}
    if c.per_layer_config == UNSET:
        return {kind: own | _of_windows(c) if kind == WINDOW else own for kind in kinds}
    found: dict[str, dict[str, int]] = {}
    stated = stated_sizes(c, len(kinds), (*SIZES, SEEN), NO_SHAPES)
    for layer, kind in enumerate(kinds):
        sizes = own | stated.get(layer, {})
        if found.setdefault(kind, sizes) != sizes:
            raise c.refuse(f"per_layer_config gives {kind} layers different sizes")
    return found


def stated_sizes(c: Config, layers: int, sizes: Sequence[str], others: Sequence[str] = ()) -> dict[int, dict[str, int]]:
    """Return the sizes in `per_layer_config`, by layer number; keys may be zero-padded (``"02"``).

    Args:
        c: the config.
        layers: the number of layers.
        sizes: keys that hold sizes.
        others: keys that are allowed and ignored.
    """
    stated = c.per_layer_config or {}
    if not isinstance(stated, dict) or not all(isinstance(each, dict) for each in stated.values()):
        raise c.refuse(f"per_layer_config is {shown(stated)}, expected an object of objects")
    found = {}
    for name, each in stated.items():
        if not str(name).isdecimal() or int(name) >= layers:
            raise c.refuse(f"per_layer_config names {shown(name)}, expected the number of one of {layers} layers")
        for key, value in each.items():
            if not (type(value) is int and value > 0 if key in sizes else key in others):
                raise c.refuse(f"per_layer_config gives layer {name} {key} = {shown(value)}, which cannot be counted")
        found[int(name)] = {key: value for key, value in each.items() if key in sizes}
    return found


def _of_windows(c: Config) -> dict[str, int]:
    """Sizes of window layers; a head has a rotary part and a part without positions."""
    sizes = {key: getattr(c, f"swa_{key}") for key in SIZES}
    turned = sizes["qk_rope_head_dim"] or c.swa_head_dim - sizes["qk_nope_head_dim"]
    if turned < 0 or turned + sizes["qk_nope_head_dim"] != c.swa_head_dim:
        raise c.refuse(
            f"swa_head_dim = {int(c.swa_head_dim)} is not swa_qk_nope_head_dim ="
            f" {int(sizes['qk_nope_head_dim'])} plus the rotary size"
        )
    return sizes | {"qk_rope_head_dim": turned}


def _attention(c: Config, kind: str, sizes: dict[str, int]) -> nn.Attention:
    """Latent attention with a norm of the rotary key and one gate per head."""
    layer: Any = SimpleNamespace(
        hidden_size=c.hidden_size,
        attention_bias=c.attention_bias,
        index_n_heads=c.index_n_heads,
        index_head_dim=c.index_head_dim,
        index_topk=c.index_topk,
        **sizes,
    )
    more: dict[str, Any] = {
        "k_rope_only_layernorm": nn.RMSNorm(layer.qk_rope_head_dim),
        "g_proj": nn.Linear(c.hidden_size, layer.num_attention_heads, bias=False),
    }
    if kind == INDEXED:
        return indexed_attention(layer, wide=True, **more)
    return latent_attention(layer, how={"windows": ((layer.sliding_window, 1),)} if kind == WINDOW else None, **more)


def _mixture(c: Config) -> nn.Module:
    of = c.n_routed_experts
    shared = kit.gated_mlp(c.hidden_size, c.shared_experts_intermediate_size * c.n_shared_experts)
    return kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "n_routed_experts"),
        of,
        scores={"e_score_correction_bias": nn.Buffer(of)},
        shared_experts=shared,
    )
