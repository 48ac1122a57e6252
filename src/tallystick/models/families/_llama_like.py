"""What Llama-like families share: config keys and tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any

from tallystick.architectures.kit import head_dim
from tallystick.core.anatomy import Windows
from tallystick.core.config import Config, optional
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig, Rope

# Keys that all read beyond the blueprint's. Older configs have rope_theta and rope_scaling apart.
KEYS: dict[str, Any] = {
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "rope_parameters": None,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "original_max_position_embeddings": optional(),
}

FRAME = (
    Rule("model.embed_tokens.weight", "embedding.weight"),
    Rule("model.norm.weight", "norm.weight"),
    Rule("lm_head.weight", "head.weight"),
)
ATTENTION = tuple(
    Rule(f"model.layers.{{}}.self_attn.{one}", f"layers.{{}}.attention.{one}")
    for one in (
        *(f"{letter}_proj.{part}" for letter in "qkvo" for part in ("weight", "bias")),
        "q_norm.weight",
        "k_norm.weight",
    )
)
MLP = tuple(
    Rule(f"model.layers.{{}}.mlp.{one}_proj.{part}", f"layers.{{}}.mlp.{one}_proj.{part}")
    for one in ("gate", "up", "down")
    for part in ("weight", "bias")
)
NORMS = (
    Rule("model.layers.{}.input_layernorm.weight", "layers.{}.attention_norm.weight"),
    Rule("model.layers.{}.post_attention_layernorm.weight", "layers.{}.mlp_norm.weight"),
)
RULES = (*FRAME, *ATTENTION, *MLP, *NORMS)


def llama_like(c: Config, **more: Any) -> DecoderConfig:
    """Return the config of a Llama-like family; `more` holds the differences from Llama."""
    if c.states("use_bidirectional_attention"):
        raise c.refuse("use_bidirectional_attention is not supported: decoders are causal")
    return DecoderConfig(
        **{
            "vocab_size": c.vocab_size,
            "width": c.hidden_size,
            "layers": c.num_hidden_layers,
            "heads": c.num_attention_heads,
            "inner": c.intermediate_size,
            "context": c.max_position_embeddings,
            "kv_heads": c.num_key_value_heads,
            "head_dim": head_dim(c),
            "norm_eps": c.rms_norm_eps,
            "rope": rope_of(c),
            "tied": c.tie_word_embeddings,
            "attention_dropout": c.attention_dropout,
            "init_std": c.initializer_range,
            **more,
        }
    )


STRETCHED = ("llama3", "yarn", "longrope")  # RoPE scalings that depend on the original context


def rope_of(c: Config, *, share: float | None = None) -> Rope:
    """Return the rotary positions of a config, with the keys of transformers 5 or older ones.

    Args:
        c: config of the model.
        share: default share of rotated channels; None in a family that always rotates all.
    """
    says = c.rope_scaling or c.rope_parameters or {}  # with both, transformers uses the older key
    if not isinstance(says, Mapping):
        raise c.refuse(f"rope_parameters is {says!r}, expected an object with a rope_type")
    kind = says.get("rope_type") or says.get("type") or "default"
    kind = "longrope" if kind == "su" else kind  # its older name
    scaling = {key: value for key, value in says.items() if key not in ("type", "rope_theta", "partial_rotary_factor")}
    if kind in STRETCHED:
        made_for = c.original_max_position_embeddings or says.get("original_max_position_embeddings")
        scaling["original_max_position_embeddings"] = int(made_for or c.max_position_embeddings)
    return Rope(
        theta=says.get("rope_theta") or c.rope_theta,
        share=1.0 if share is None else says.get("partial_rotary_factor") or share,
        scaling={} if kind == "default" else {**scaling, "rope_type": kind},
    )


def each_layer(c: Config, windows: Windows) -> tuple[int | None, ...]:
    """Return each layer's sliding window, repeating the blueprint's pattern."""
    pattern = [None if window is None else int(window) for window, count in windows for _ in range(count)]
    return tuple(islice(cycle(pattern), int(c.num_hidden_layers)))
