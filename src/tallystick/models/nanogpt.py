"""nanoGPT's ``ckpt.pt``: a dictionary with the model's arguments and its state dict, beside the optimizer's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick.models.config import DecoderConfig
from tallystick.models.families import config_of
from tallystick.models.lazy_tensors import Held
from tallystick.models.pickles import tensors_of

_ARGUMENTS = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias", "dropout")
_COMPILED = "_orig_mod."  # torch.compile's, before every name


def is_checkpoint(values: Any) -> bool:
    """Whether a file's content is one of nanoGPT's."""
    return isinstance(values, dict) and isinstance(values.get("model_args"), dict) and "model" in values


def read(values: Mapping[str, Any], path: Path) -> tuple[DecoderConfig, dict[str, Held]]:
    """The config of a checkpoint's arguments, and its tensors."""
    arguments = {name: one for name, one in values["model_args"].items() if name in _ARGUMENTS and one is not None}
    held = tensors_of(values["model"], path)
    return (
        config_of({"model_type": "nanogpt", **arguments}),
        {name.removeprefix(_COMPILED): one for name, one in held.items()},
    )
