"""The data that the page needs at its start: the initial source, presets and choices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick.answers.devices import DEVICES
from tallystick.answers.memory.activations import ATTENTION, LOSS, RECOMPUTE
from tallystick.answers.memory.answer import MODES
from tallystick.answers.memory.model_states import PRECISIONS
from tallystick.answers.memory.number_formats import BLOCK_CACHES, CACHED, PACKED
from tallystick.answers.memory.optimizers import OPTIMIZERS
from tallystick.presets import PRESETS
from tallystick.web.public import PAGE, public_page
from tallystick.web.request import MOST_CONFIG
from tallystick.web.security import MOST_BYTES
from tallystick.web.stories import story_list

STATIC = Path(__file__).parent / "static"  # the page's HTML, JavaScript and CSS
_FLOATS = ("float32", "bfloat16", "float16")
FIRST = "gpt2"
HUB = "https://huggingface.co"  # as in the page's content security policy


def start(source: str | None, settings: Mapping[str, Any], *, answered_by: str = "process") -> dict[str, Any]:
    """Return the initial source and settings, and the choices of each option.

    Args:
        source: the source shown first; None is a preset.
        settings: config keys to set over the source.
        answered_by: ``"process"`` of this machine, or Python in the ``"browser"``.
    """
    public = public_page()
    return {
        "answered_by": answered_by,
        "public": public or PAGE,
        "docs": public and public.removesuffix(PAGE),
        "stories": story_list(),
        "hub": HUB,
        "source": source or FIRST,
        "set": dict(settings),
        "presets": list(PRESETS),
        "most_config": MOST_CONFIG,
        "most_bytes": MOST_BYTES,
        "choices": {
            "mode": MODES,
            "dtype": [*_FLOATS, *PACKED],
            "kv_dtype": [*_FLOATS, "fp8", *CACHED, *BLOCK_CACHES],
            "optimizer": list(OPTIMIZERS),
            "precision": PRECISIONS,
            "attention": ATTENTION,
            "recompute": RECOMPUTE,
            "loss": LOSS,
            "zero": [0, 1, 2, 3],
            "device": list(DEVICES),
        },
    }
