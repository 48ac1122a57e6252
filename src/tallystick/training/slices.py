"""The tensors of a checkpoint's state, each in slices of one or several ranks: checked before torch reads them.

The state is safetensors as `torch.distributed.checkpoint` writes them: one file for each rank. A file's metadata says at
which row of its tensor each slice begins. Torch believes it: it takes memory for what is claimed, and leaves rows as they are
that no slice has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.errors import BadInput, quoted
from tallystick.sources.safetensors import read_header

SUFFIX = ".safetensors"
_OFFSETS, _SAVED = "DCP_SHARDING_INFO", "saved_offsets"  # torch's words


class Stored(NamedTuple):
    """One tensor of a state."""

    dtype: str  # torch's word
    shape: tuple[int, ...]


class _Slice(NamedTuple):
    start: int  # row of the tensor
    rows: int
    kind: tuple[str, tuple[int, ...]]  # dtype, and sizes of a row; both are equal in all slices


def stored_in(folder: Path) -> dict[str, Stored]:
    """What the files of a state hold, by name.

    Raises:
        BadInput: for a file that is no safetensors, and for slices that overlap, leave rows out or differ in kind.
    """
    slices: dict[str, list[_Slice]] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = read_header(path)
        offsets = _offsets(header.metadata, path)
        for tensor in header.tensors:
            start = _start(offsets.get(tensor.name), tensor.shape)
            if start is None:
                raise BadInput(f"{path} does not say where its slice of {quoted(tensor.name)} begins")
            rows, row = (tensor.shape[0], tensor.shape[1:]) if tensor.shape else (1, ())
            slices.setdefault(tensor.name, []).append(_Slice(start, rows, (tensor.dtype, (len(tensor.shape), *row))))
    return {name: _joined(name, sorted(found), folder) for name, found in slices.items()}


def _offsets(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    try:
        offsets = json.loads(metadata.get(_OFFSETS, ""))
    except (ValueError, RecursionError):
        offsets = None
    if not isinstance(offsets, dict):
        raise BadInput(f"{path} does not say which slices it holds")
    return offsets


def _start(said: Any, shape: tuple[int, ...]) -> int | None:
    """The row at which a slice begins; None where that is not said, or columns are cut too, which no run writes."""
    places = said.get(_SAVED) if isinstance(said, dict) else None
    if not isinstance(places, list) or len(places) != len(shape) or any(type(place) is not int for place in places):
        return None
    if any(places[1:]) or any(place < 0 for place in places[:1]):
        return None
    return places[0] if places else 0


def _joined(name: str, slices: list[_Slice], folder: Path) -> Stored:
    """The tensor that its slices are, in the order of their rows."""
    rows, (dtype, (dimensions, *row)) = 0, slices[0].kind
    for one in slices:
        if one.start != rows or one.kind != slices[0].kind:
            raise BadInput(f"{folder} does not hold {quoted(name)} whole: its slices do not follow one another")
        rows += one.rows
    return Stored(dtype, (rows, *row) if dimensions else ())
