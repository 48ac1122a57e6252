"""Read and write a checkpoint's tensors as slices of one or more ranks, in safetensors.

Each rank writes one file, whose metadata gives the first row of each slice: the layout of
`HuggingFaceStorageWriter` in `torch.distributed.checkpoint` (since torch 2.9). Any number of
ranks can read them. What the files claim is checked before a tensor is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard

from tallystick.errors import BadInput, quoted
from tallystick.formats.safetensors import read_header

SUFFIX = ".safetensors"
_OFFSETS, _SAVED = "DCP_SHARDING_INFO", "saved_offsets"  # torch's keys


class Stored(NamedTuple):
    """Dtype and shape of one tensor of a state."""

    dtype: str  # torch's name
    shape: tuple[int, ...]


class _Slice(NamedTuple):
    start: int  # first row within the tensor
    rows: int
    kind: tuple[str, tuple[int, ...]]  # dtype and shape of a row; equal in all slices


def write_slices(tensors: Mapping[str, Tensor], folder: Path, rank: int) -> None:
    """Write one rank's file: its slices; the first rank adds the tensors that are not sharded."""
    mine = {name: _mine(tensor) for name, tensor in tensors.items() if rank == 0 or isinstance(tensor, DTensor)}
    held = {name: (start, part) for name, (start, part) in mine.items() if part.numel() or rank == 0}
    offsets = {name: {_SAVED: [start, *[0] * (part.ndim - 1)][: part.ndim]} for name, (start, part) in held.items()}
    folder.mkdir(exist_ok=True)
    parts = {name: part.contiguous() for name, (_, part) in held.items()}
    metadata = {"format": "pt", _OFFSETS: json.dumps(offsets)}
    save_file(parts, folder / f"shard-{rank + 1:05d}-model-00001-of-00001{SUFFIX}", metadata)


def read_slices(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Fill tensors, or this rank's slices, from files that `stored_in` has checked."""
    mine = {name: _mine(tensor) for name, tensor in tensors.items()}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        offsets = _offsets(read_header(path).metadata, path)
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - no dictionary
                _copy(file, name, offsets[name][_SAVED], *mine[name])


def _copy(file: Any, name: str, offsets: list[int], start: int, part: Tensor) -> None:
    """Copy a slice's rows into `part`, which starts at row `start` of the whole tensor."""
    if not part.ndim:
        part.copy_(file.get_tensor(name))
        return
    stored = file.get_slice(name)
    begin, end = max(start, offsets[0]), min(start + len(part), offsets[0] + stored.get_shape()[0])
    if begin < end:
        part[begin - start : end - start].copy_(stored[begin - offsets[0] : end - offsets[0]])


def _mine(tensor: Tensor) -> tuple[int, Tensor]:
    """Return the first row that this rank holds of a tensor, and its slice (ceil division)."""
    if not isinstance(tensor, DTensor):
        return 0, tensor.detach()
    (placement,), mesh = tensor.placements, tensor.device_mesh
    assert placement == Shard(0), placement  # noqa: S101 - as `Ranks.wrapped` shards them
    rows = -(-len(tensor) // mesh.size())
    return min(rows * mesh.get_local_rank(), len(tensor)), tensor.detach().to_local()


def stored_in(folder: Path) -> dict[str, Stored]:
    """Return the dtype and shape of each tensor in a state's files, by name.

    Raises:
        BadInput: if a file is not safetensors, or slices overlap, leave rows out or differ in
            dtype or row shape.
    """
    slices: dict[str, list[_Slice]] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = read_header(path)
        offsets = _offsets(header.metadata, path)
        for tensor in header.tensors:
            start = _start(offsets.get(tensor.name), tensor.shape)
            if start is None:
                raise BadInput(f"{path} lacks the start of its slice of {quoted(tensor.name)}", code="malformed")
            rows, row = (tensor.shape[0], tensor.shape[1:]) if tensor.shape else (1, ())
            slices.setdefault(tensor.name, []).append(_Slice(start, rows, (tensor.dtype, (len(tensor.shape), *row))))
    return {name: _joined(name, sorted(found), folder) for name, found in slices.items()}


def _offsets(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    try:
        offsets = json.loads(metadata.get(_OFFSETS, ""))
    except (ValueError, RecursionError):
        offsets = None
    if not isinstance(offsets, dict):
        raise BadInput(f"{path} lacks the list of its slices", code="malformed")
    return offsets


def _start(said: Any, shape: tuple[int, ...]) -> int | None:
    """Return a slice's first row; None if unknown, or if columns are sharded too."""
    places = said.get(_SAVED) if isinstance(said, dict) else None
    if not isinstance(places, list) or len(places) != len(shape) or any(type(place) is not int for place in places):
        return None
    if any(places[1:]) or any(place < 0 for place in places[:1]):
        return None
    return places[0] if places else 0


def _joined(name: str, slices: list[_Slice], folder: Path) -> Stored:
    """Return the tensor that consecutive slices form."""
    rows, (dtype, (dimensions, *row)) = 0, slices[0].kind
    for one in slices:
        if one.start != rows or one.kind != slices[0].kind:
            raise BadInput(f"{folder} does not hold all of {quoted(name)}: its slices have gaps", code="incomplete")
        rows += one.rows
    return Stored(dtype, (rows, *row) if dimensions else ())
