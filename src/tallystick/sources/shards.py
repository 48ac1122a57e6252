"""The shards of a checkpoint, and the index that says which tensor is in which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, grouped, quoted, shown
from tallystick.ledger import Ledger
from tallystick.sources.files import exists, read_json
from tallystick.sources.remote import AnyLocation, Location, at_once
from tallystick.sources.safetensors import Header, read_header


def headers_of(path: AnyLocation) -> list[tuple[AnyLocation, Header]]:
    """Every file of a safetensors checkpoint with its header: the one file, or all that an index names."""
    if not path.name.endswith(".json"):
        return [(path, read_header(path))]
    shards = shards_of(path)
    paths = [path.parent / shard for shard in sorted(shards)]
    return checked(path, shards, list(zip(paths, at_once(read_header, paths), strict=True)))


def named_in(index: Location) -> dict[str, set[str]]:
    """The files that an index names, which may not be there, each with the names that it puts in it."""
    values = read_json(index)
    weight_map = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadInput(f"{index} is no index of a sharded checkpoint: it has no weight_map")
    shards: dict[str, set[str]] = {}
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


def shards_of(index: Location) -> dict[str, set[str]]:
    """The files beside an index that it names, all of which are there, each with the names that it puts in it."""
    shards = named_in(index)
    there = at_once(exists, [index.parent / shard for shard in shards])
    absent = [shard for shard, found in zip(shards, there, strict=True) if not found]
    if absent:
        raise BadInput(
            f"{index} names {len(shards)} shards, of which {len(absent)} are not beside it: {', '.join(map(quoted, absent[:3]))}"
            + (", …" if len(absent) > 3 else "")
        )
    return shards


def checked(
    index: Location, shards: Mapping[str, set[str]], files: list[tuple[AnyLocation, Header]]
) -> list[tuple[AnyLocation, Header]]:
    """The shards that an index names, each of which must hold what it says, and no two of them one tensor."""
    weight_map = {name: shard for shard, names in shards.items() for name in names}
    found: set[str] = set()
    for path, header in files:
        shard = path.name
        held = {tensor.name for tensor in header.tensors}
        if not shards[shard] <= held:
            name = min(shards[shard] - held)
            raise BadInput(f"{index} puts {quoted(name)} in {quoted(shard)}, which does not hold it")
        elsewhere = [name for name in held if weight_map.get(name, shard) != shard]
        if elsewhere:
            name = min(elsewhere)
            raise BadInput(
                f"{index} puts {quoted(name)} in {quoted(weight_map[name])}, but {quoted(shard)} holds it too"
            )
        if not found.isdisjoint(held):
            raise BadInput(f"{index}: two of its shards hold a tensor of one name that its weight_map does not list")
        found |= held
    return files


def claim_notes(index: Path, ledger: Ledger) -> tuple[str, ...]:
    """Where the sums in an index's metadata are not those of its files; none of them is needed to load anything."""
    metadata = read_json(index).get("metadata")
    said: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    notes = []
    size, parameters = said.get("total_size"), said.get("total_parameters")
    held = ledger.totals["stored_bytes"]
    if isinstance(size, int | float) and not isinstance(size, bool) and size != held:
        notes.append(f"{index.name} says total_size {grouped(size)}, and its files hold {held:,} bytes of tensors")
    if type(parameters) is int and parameters != ledger.total:
        twice = parameters == ledger.totals["by_name"]
        how = (
            "counting every name"
            if twice
            else f"{grouped(abs(parameters - ledger.total))} {'more' if parameters > ledger.total else 'fewer'}"
        )
        notes.append(f"{index.name} says total_parameters {grouped(parameters)}: {how}")
    return tuple(notes)
