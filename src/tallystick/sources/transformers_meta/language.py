"""The language model inside a type that transformers builds: how it attends, from its own config.

`serve` plans its KV cache and states. The other questions are answered from the tensors alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick import architectures
from tallystick.core.description import ModelDescription
from tallystick.errors import BadInput
from tallystick.sources.configs.native import native_ledger
from tallystick.sources.configs.resolve import resolve

TEXTS = ("text_config", "llm_config", "language_config")
# Types of nested configs, and the native type with the same attention and MLPs.
ALIKE = {
    "qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe",
    "glm4v_text": "glm4",
}  # fmt: skip


def language_of(values: Mapping[str, Any], source: str) -> ModelDescription | None:
    """Return the description of a config's language model, if its type is native.

    Args:
        values: the whole config, with the keys that transformers adds.
        source: the user's name for the config, for messages.
    """
    text = next((values[key] for key in TEXTS if isinstance(values.get(key), Mapping)), None)
    if text is None:
        return None
    model_type = str(text.get("model_type") or "")
    native = ALIKE.get(model_type, model_type)
    if architectures.find(native) is None:
        return None
    kept = {key: value for key, value in text.items() if key not in ("architectures", "auto_map")}
    try:
        model = native_ledger(resolve({**kept, "model_type": native}, {}, source)).model
    except BadInput:
        return None
    return model if model.attending or model.recurring else None


def vision_of(values: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the sizes of a config's vision tower, by its keys."""
    vision = values.get("vision_config")
    if not isinstance(vision, Mapping):
        return ()
    merged = values.get("spatial_merge_size")
    sizes = {**({"spatial_merge_size": merged} if merged else {}), **vision}
    return tuple((str(name), value) for name, value in sizes.items() if type(value) is int)
