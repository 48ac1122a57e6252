"""Find the checkpoint in a folder by its file names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tallystick.core.config import CONFIG
from tallystick.errors import BadInput, code_of, quoted
from tallystick.files.remote import AnyLocation, Location
from tallystick.formats import INDEXES, OTHERS, SAFETENSORS

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TORCH_INDEX = "pytorch_model.bin.index.json"
TORCH_SINGLE = "pytorch_model.bin"

_SAFE_INDEX, _OTHER_INDEX = INDEXES
_GRAPH = ".xml"  # OpenVINO's graph; its weights are in a .bin
_PART = re.compile(r"-\d{5}(?=-of-\d{5}\.gguf$)")

# Usual names of weights in formats other than safetensors, likeliest first.
_USUAL = (TORCH_INDEX, TORCH_SINGLE, "model.pt", "model.pth", "ckpt.pt", ".metadata")
_BESIDE_WEIGHTS = (
    "training_args",
    "optimizer",
    "scheduler",
    "rng_state",
    "scaler",
)  # files that trainers save next to the weights


def names_in(folder: Location) -> list[str]:
    """Return the file names in a folder, in alphabetical order.

    Raises:
        BadInput: if the folder cannot be read.
    """
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror or error}", code=code_of(error)) from None


def find_weights(folder: AnyLocation, names: Sequence[str]) -> AnyLocation | None:
    """Return the checkpoint in a folder, or None. A safetensors checkpoint is preferred.

    Args:
        folder: the folder.
        names: its file names.

    Raises:
        BadInput: if several files could be the checkpoint.
    """
    return find_safetensors(folder, names) or _other(folder, names)


def find_safetensors(folder: AnyLocation, names: Sequence[str]) -> AnyLocation | None:
    """Return the safetensors checkpoint in a folder: its index, its single file, or None.

    Args:
        folder: the folder.
        names: its file names.

    Raises:
        BadInput: if there are several safetensors files and no index.
    """
    for preferred in (INDEX, SINGLE):
        if preferred in names:
            return folder / preferred
    indexes = [name for name in names if name.endswith(_SAFE_INDEX)]
    files = [name for name in names if SAFETENSORS.has(name)]
    if len(indexes) == 1:
        return folder / indexes[0]
    if len(files) == 1:
        return folder / files[0]
    if files:
        raise BadInput(
            f"{folder} holds {len(files)} safetensors files and no {INDEX}: name one of them", code="ambiguous"
        )
    return None


def is_main(name: str) -> bool:
    """Return whether a file name may be the model's weights in a format other than safetensors.

    Optimizer and scheduler states have other names.
    """
    return name.endswith(tuple(end for one in OTHERS for end in one.endings)) and not name.startswith(_BESIDE_WEIGHTS)


def _other(folder: AnyLocation, names: Sequence[str]) -> AnyLocation | None:
    """Return the checkpoint in a format other than safetensors, or None.

    Return None also if several files qualify and the folder has a config.
    """
    for usual in _USUAL:
        if usual in names:
            return folder / usual
    indexes = [name for name in names if name.endswith(_OTHER_INDEX)]
    files = [name for name in names if is_main(name) and name.removesuffix(".bin") + _GRAPH not in names]
    if len(indexes) == 1:
        return folder / indexes[0]
    if len(files) > 1 and len({_PART.sub("", name) for name in files}) == 1:  # parts of one checkpoint
        return folder / files[0]
    if len(files) > 1 and CONFIG in names:
        return None
    if len(files) > 1:
        raise BadInput(
            f"{folder} holds {len(files)} files of weights, such as {quoted(files[0])}: name one of them",
            code="ambiguous",
        )
    return folder / files[0] if files else None
