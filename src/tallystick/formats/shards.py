"""Read checkpoint shards and the index that maps tensors to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted, shown
from tallystick.files.local import exists, here
from tallystick.files.remote import Location, NotThere, at_once
from tallystick.files.texts import json_within
from tallystick.formats import INDEXES, OTHERS, SAFETENSORS, read_weights
from tallystick.formats.weights_file import Header, WeightsFile

_NAMED, _FILE = 120, 400  # bytes that Python takes for a name without its letters, and for a file


def read_checkpoint(path: Location, named: Named | None = None) -> WeightsFile:
    """Read a checkpoint of any known format: one file, or all shards of an index.

    Args:
        path: the file or the index.
        named: contents of the index, if already read.

    Raises:
        BadInput: if a file is broken or missing, or a shard does not match the index.
    """
    if not path.name.endswith(".json"):
        return read_weights(path)
    shards, among = shards_of(path, named), (SAFETENSORS,) if path.name.endswith(INDEXES[0]) else OTHERS

    def read(shard: Location) -> WeightsFile | None:
        try:
            return read_weights(shard, among)
        except NotThere:
            return None

    parts = at_once(read, [path.parent / shard for shard in sorted(shards)])
    _refuse_absent(path, shards, [shard for shard, part in zip(sorted(shards), parts, strict=True) if part is None])
    return _joined(path, shards, [part for part in parts if part is not None])


def headers_of(path: Path) -> list[tuple[Path, Header]]:
    """Return every file of a local checkpoint with its header."""
    return [(here(file), header) for file, header in read_checkpoint(path).files]


def _joined(index: Location, shards: Named, parts: Sequence[WeightsFile]) -> WeightsFile:
    """Return the contents of all shards as one checkpoint."""
    return WeightsFile(
        parts[0].kind,
        checked(index, shards, [file for part in parts for file in part.files]),
        {name: shared for part in parts for name, shared in part.sharing.items()},
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        weights={name: weight for part in parts for name, weight in part.weights.items()},
        stated=shards.stated,
        auxiliary=frozenset().union(*(part.auxiliary for part in parts)),
    )


class Named(dict[str, set[str]]):
    """Shards of an index: file name -> tensor names, and the totals that the index states."""

    def __init__(self, name: str, stated: Mapping[str, Any]) -> None:
        super().__init__()
        self.name = name  # of the index
        self.kept = 0  # bytes taken from the source's budget
        self.stated = {key: stated[key] for key in ("total_size", "total_parameters") if key in stated}


def named_in(index: Location) -> Named:
    """Read the shards of an index, without checking that they exist."""
    with json_within(index) as values:
        return _shards_in(values, index)


def _keep(shards: Named, index: Location) -> None:
    """Take the memory of an index's names from the budget; `checked` gives it back."""
    budget, count = current(), sum(map(len, shards.values()))
    try:
        budget.step(count)
        letters = sum(map(len, chain.from_iterable(shards.values())))
        shards.kept = letters + _NAMED * count + _FILE * len(shards)
        budget.keep(shards.kept, "its names")
    except BadInput as error:
        raise BadInput(f"{index}: {error}", code=error.code) from None


def _shards_in(values: Any, index: Location) -> Named:
    weight_map = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadInput(f"{index} is not the index of a sharded checkpoint: it has no weight_map", code="malformed")
    stated = values.get("metadata")
    shards = Named(index.name, stated if isinstance(stated, dict) else {})
    for name, shard in weight_map.items():
        names = shards.get(shard) if isinstance(shard, str) else None
        if names is None:  # a new file name: checked once, not for each of its tensors
            if not isinstance(shard, str) or Path(shard).name != shard or shard in ("", ".", "..") or "\\" in shard:
                raise BadInput(
                    f"{index} puts {quoted(name)} in {shown(shard)}, which is not a file name in its own folder",
                    code="unsafe",
                )
            names = shards[shard] = set()
        names.add(name)
    return shards


def shards_of(index: Location, named: Named | None = None) -> Named:
    """Return the shards of an index.

    Args:
        index: the index file.
        named: its contents, if already read.

    Raises:
        BadInput: if a shard is known to be missing.
    """
    shards = named_in(index) if named is None else named
    _keep(shards, index)
    _refuse_absent(index, shards, [shard for shard in shards if exists(index.parent / shard) is False])
    return shards


def _refuse_absent(index: Location, shards: Named, absent: Sequence[str]) -> None:
    if absent:
        raise BadInput(
            f"{index} names {len(shards)} shards, of which {len(absent)} are missing from its folder:"
            f" {', '.join(map(quoted, absent[:3]))}" + (", …" if len(absent) > 3 else ""),
            code="incomplete",
        )


def checked(
    index: Location, shards: Named, files: Sequence[tuple[Location, Header]]
) -> Sequence[tuple[Location, Header]]:
    """Check the shards against their index, and return them.

    Args:
        index: the index file.
        shards: contents of the index.
        files: the shards with their headers.

    Raises:
        BadInput: if a shard lacks a tensor of the index, or two shards hold the same tensor.
    """
    unlisted: set[str] = set()  # tensors in a shard that the index does not list
    for path, header in files:
        shard = path.name
        held = {tensor.name for tensor in header.tensors}
        if not shards[shard] <= held:
            name = min(shards[shard] - held)
            raise BadInput(f"{index} puts {quoted(name)} in {quoted(shard)}, which does not hold it", code="incomplete")
        if len(held) > len(shards[shard]):
            current().step(len(held) + len(shards))
            further = held - shards[shard]
            for other, names in shards.items():
                if elsewhere := further & names:
                    name = min(elsewhere)
                    raise BadInput(
                        f"{index} puts {quoted(name)} in {quoted(other)}, but {quoted(shard)} holds it too",
                        code="overlap",
                    )
            if not further.isdisjoint(unlisted):
                raise BadInput(
                    f"{index}: two shards hold a tensor with the same name, not listed in its weight_map",
                    code="overlap",
                )
            unlisted |= further
    current().keep(-shards.kept, "its names")
    return files
