"""Load nanoGPT's ``ckpt.pt``: model arguments and state dict, next to the optimizer's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick.models.checkpoints.lazy_tensors import Held
from tallystick.models.checkpoints.pickles import tensors_of
from tallystick.models.config import DecoderConfig
from tallystick.models.families import config_of

_ARGUMENTS = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias", "dropout")
_COMPILED = "_orig_mod."  # prefix that torch.compile adds to every name


def is_checkpoint(values: Any) -> bool:
    """Return whether unpickled values are a nanoGPT checkpoint."""
    return isinstance(values, dict) and isinstance(values.get("model_args"), dict) and "model" in values


def read(values: Mapping[str, Any], path: Path) -> tuple[DecoderConfig, dict[str, Held]]:
    """Return the config from a checkpoint's arguments, and its tensors."""
    arguments = {name: one for name, one in values["model_args"].items() if name in _ARGUMENTS and one is not None}
    held = tensors_of(values["model"], path)
    return (
        config_of({"model_type": "nanogpt", **arguments}),
        {name.removeprefix(_COMPILED): one for name, one in held.items()},
    )
