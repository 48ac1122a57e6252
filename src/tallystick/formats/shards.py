"""The shards of a checkpoint, and the index that says which tensor is in which."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tallystick.budget import current
from tallystick.errors import BadInput, quoted, shown
from tallystick.files.local import exists
from tallystick.files.remote import AnyLocation, Location, at_once
from tallystick.files.texts import json_within
from tallystick.formats.contents import Header
from tallystick.formats.safetensors import read_header

_NAMED, _FILE = 120, 400  # bytes that Python takes for a name, without its letters, and for a file


def headers_of(path: AnyLocation) -> list[tuple[AnyLocation, Header]]:
    """Every file of a safetensors checkpoint with its header: the one file, or all that an index names."""
    if not path.name.endswith(".json"):
        return [(path, read_header(path))]
    return headers_in(path, shards_of(path))


def headers_in(index: AnyLocation, shards: Named) -> list[tuple[AnyLocation, Header]]:
    """The shards that an index names with their headers."""
    paths = [index.parent / shard for shard in sorted(shards)]
    return checked(index, shards, list(zip(paths, at_once(read_header, paths), strict=True)))


class Named(dict[str, set[str]]):
    """The files that an index names, each with the names that it puts in it, and what it states of the whole."""

    def __init__(self, stated: Mapping[str, Any]) -> None:
        super().__init__()
        self.kept = 0  # bytes of the source's budget
        self.stated = {key: stated[key] for key in ("total_size", "total_parameters") if key in stated}


def named_in(index: Location) -> Named:
    """The files that an index names, which may not be there."""
    with json_within(index) as values:
        return _shards_in(values, index)


def _keep(shards: Named, index: Location) -> None:
    """Take what the names of an index need from the budget of the source; `checked` gives it back."""
    budget, count = current(), sum(map(len, shards.values()))
    try:
        budget.step(count)
        letters = sum(map(len, chain.from_iterable(shards.values())))
        shards.kept = letters + _NAMED * count + _FILE * len(shards)
        budget.keep(shards.kept, "its names")
    except BadInput as error:
        raise BadInput(f"{index}: {error}") from None


def _shards_in(values: Any, index: Location) -> Named:
    weight_map = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadInput(f"{index} is no index of a sharded checkpoint: it has no weight_map")
    stated = values.get("metadata")
    shards = Named(stated if isinstance(stated, dict) else {})
    for name, shard in weight_map.items():
        names = shards.get(shard) if isinstance(shard, str) else None
        if names is None:  # a file that was not named before: looked at once, however many tensors it holds
            if not isinstance(shard, str) or Path(shard).name != shard or shard in ("", ".", "..") or "\\" in shard:
                raise BadInput(
                    f"{index} puts {quoted(name)} in {shown(shard)}, which is no file name in its own folder"
                )
            names = shards[shard] = set()
        names.add(name)
    return shards


def shards_of(index: Location) -> Named:
    """The files beside an index that it names, all of which are there."""
    shards = named_in(index)
    _keep(shards, index)
    there = at_once(exists, [index.parent / shard for shard in shards])
    absent = [shard for shard, found in zip(shards, there, strict=True) if not found]
    if absent:
        raise BadInput(
            f"{index} names {len(shards)} shards, of which {len(absent)} are not beside it: {', '.join(map(quoted, absent[:3]))}"
            + (", …" if len(absent) > 3 else "")
        )
    return shards


def checked(
    index: Location, shards: Named, files: list[tuple[AnyLocation, Header]]
) -> list[tuple[AnyLocation, Header]]:
    """The shards that an index names, each of which must hold what it says, and no two of them one tensor."""
    unlisted: set[str] = set()  # tensors that are in a shard and not in the index
    for path, header in files:
        shard = path.name
        held = {tensor.name for tensor in header.tensors}
        if not shards[shard] <= held:
            name = min(shards[shard] - held)
            raise BadInput(f"{index} puts {quoted(name)} in {quoted(shard)}, which does not hold it")
        if len(held) > len(shards[shard]):
            current().step(len(held) + len(shards))
            further = held - shards[shard]
            for other, names in shards.items():
                if elsewhere := further & names:
                    name = min(elsewhere)
                    raise BadInput(f"{index} puts {quoted(name)} in {quoted(other)}, but {quoted(shard)} holds it too")
            if not further.isdisjoint(unlisted):
                raise BadInput(
                    f"{index}: two of its shards hold a tensor of one name that its weight_map does not list"
                )
            unlisted |= further
    current().keep(-shards.kept, "its names")
    return files
