"""Load ``torch.save`` files: tensors and plain values only, no code is run."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.files.local import opened
from tallystick.formats import torch_save
from tallystick.formats.shards import shards_of
from tallystick.models.checkpoints.lazy_tensors import Held, in_memory


def is_pickle(path: Path) -> bool:
    """Return whether a file begins as ``torch.save`` files do."""
    with opened(path) as file:
        return torch_save.sniff(file)


def unpickled(path: Path) -> Any:
    """Return the values of a ``torch.save`` file; zip files are memory-mapped.

    Raises:
        BadInput: if there is anything but tensors and plain values.
    """
    with opened(path):  # raises unless it is a regular file and not a pointer
        pass
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        why = next((line for line in str(error).splitlines() if "GLOBAL" in line or "global" in line), "")
        raise BadInput(
            f"{path} holds more than weights, or is broken; nothing was run{f': {why.strip()}' if why else ''}",
            code="unsafe",
        ) from None
    except Exception as error:  # torch's readers raise many types on broken bytes
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{path} is not a readable torch.save file: {why}", code="malformed") from None


def held_by(path: Path) -> dict[str, Held]:
    """Return the tensors of a ``.bin`` file, or of all shards of an index."""
    files = [path.parent / shard for shard in shards_of(path)] if path.name.endswith(".json") else [path]
    return {name: one for file in files for name, one in tensors_of(unpickled(file), file).items()}


def tensors_of(values: Any, path: Path) -> dict[str, Held]:
    """Return a state dict's tensors; `path` is for messages."""
    if not isinstance(values, dict) or not all(isinstance(one, Tensor) for one in values.values()):
        raise BadInput(f"{path} holds no state dict: expected a dictionary of tensors", code="malformed")
    return {str(name): in_memory(one) for name, one in values.items()}
