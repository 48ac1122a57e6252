"""A checkpoint becomes a ledger by its headers alone, with the config beside it where there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallystick import architectures
from tallystick.errors import BadInput, quoted, shown
from tallystick.ledger import Entry, Ledger, Tie, size_in_bytes
from tallystick.sources.config import CONFIG, ledger_from_config, model_type_of
from tallystick.sources.files import read_json
from tallystick.sources.matching import match
from tallystick.sources.names import is_buffer, role_of
from tallystick.sources.rollup import roll_up
from tallystick.sources.safetensors import Header, read_header

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_SHARD = re.compile(r".*-(\d{5})-of-(\d{5})\.safetensors")

# Each tensor that a config describes and a checkpoint lacks is named. The largest models have some 100,000.
MOST_DESCRIBED = 1_000_000


def find_checkpoint(folder: Path) -> Path | None:
    """The checkpoint in a folder: its index, its one file, or None where it holds no weights that we read."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror or error}") from None
    indexes = [name for name in names if name.endswith(".safetensors.index.json")]
    files = [name for name in names if name.endswith(".safetensors")]
    for preferred in (INDEX, SINGLE):
        if preferred in names:
            return folder / preferred
    if len(indexes) == 1:
        return folder / indexes[0]
    if len(files) == 1:
        return folder / files[0]
    if files:
        raise BadInput(f"{folder} holds {len(files)} safetensors files and no {INDEX}: name one of them")
    return None


def ledger_from_checkpoint(path: Path, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """The ledger of a ``.safetensors`` file or of a sharded one's index.

    Parameters are told from buffers by the config beside the file, or else by well-known names.
    `overrides` are set over that config.
    """
    header = _read_index(path) if path.name.endswith(".json") else read_header(path)
    entries = [
        entry._replace(role=role_of(entry.name), buffer=is_buffer(entry.name, entry.shape))
        for entry in roll_up((tensor.name, tensor.dtype, tensor.shape) for tensor in header.tensors)
    ]
    stored = (
        sum(entry.size * entry.copies for entry in entries),
        sum(size_in_bytes(entry.size, entry.dtype) * entry.copies for entry in entries),
    )
    config = path.parent / CONFIG
    described, notes = _described(config, overrides) if config.exists() or overrides else ([], [])
    told = _ByConfig(entries, described) if described else None
    if told is not None:
        entries = told.entries
        notes += told.notes
    entries += _aliases(entries, header.metadata, {tensor.name for tensor in header.tensors})
    if told is None:
        notes += _notes_by_name(entries)
    if shard := _SHARD.fullmatch(path.name):
        notes.append(f"this is shard {int(shard[1])} of {int(shard[2])} alone: name its folder or index for the whole")
    return Ledger(
        entries,
        source=source,
        kind="safetensors",
        architecture=told.described.architecture if told else None,
        notes=notes + _integer_note(entries),
        relations=told.relations if told else None,
        stored=stored,
        described=told.described if told else None,
        mismatches=told.mismatches if told else None,
    )


def _read_index(path: Path) -> Header:
    """All shards that an index names, as one header."""
    index = read_json(path)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadInput(f"{path} is no index of a sharded checkpoint: it has no weight_map")
    shards: dict[str, set[str]] = {}
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or Path(shard).name != shard or shard in ("", ".", "..") or "\\" in shard:
            raise BadInput(f"{path} puts {quoted(name)} in {shown(shard)}, which is no file name in its own folder")
        shards.setdefault(shard, set()).add(name)
    absent = [shard for shard in shards if not os.path.exists(path.parent / shard)]
    if absent:
        raise BadInput(
            f"{path} names {len(shards)} shards, of which {len(absent)} are not beside it: {', '.join(map(quoted, absent[:3]))}"
            + (", …" if len(absent) > 3 else "")
        )
    whole = Header([], {})
    for shard, names in sorted(shards.items()):
        header = read_header(path.parent / shard)
        held = {tensor.name for tensor in header.tensors}
        if not names <= held:
            raise BadInput(f"{path} puts {quoted(min(names - held))} in {quoted(shard)}, which does not hold it")
        elsewhere = [name for name in held if weight_map.get(name, shard) != shard]
        if elsewhere:
            name = min(elsewhere)
            raise BadInput(
                f"{path} puts {quoted(name)} in {quoted(weight_map[name])}, but {quoted(shard)} holds it too"
            )
        whole.tensors.extend(header.tensors)
        whole.metadata.update(header.metadata)
    if len({tensor.name for tensor in whole.tensors}) < len(whole.tensors):
        raise BadInput(f"{path}: two of its shards hold a tensor of one name that its weight_map does not list")
    return whole


def _described(config: Path, overrides: Mapping[str, Any]) -> tuple[list[Ledger], list[str]]:
    """The ledgers that the config beside a checkpoint describes, one for each layout; none where it is not known."""
    try:
        if overrides and not config.exists():
            raise BadInput(f"there is no {config} to set {', '.join(overrides)} in")
        values = read_json(config)
        if not isinstance(values, dict):
            raise BadInput(f"{config} holds {shown(values)}, expected an object with a model_type")
        model_type = model_type_of({**values, **overrides}, str(config))
        if architectures.find(model_type) is None:
            unknown = f"{config.name} says {quoted(model_type)}, which is not known natively"
            if overrides:
                raise BadInput(f"{unknown}: nothing reads {', '.join(overrides)}")
            return [], [f"{unknown}: roles by name"]
        ledgers = [
            ledger_from_config(values, overrides, source=str(config), published=published)
            for published in (False, True)
        ]
        if any(sum(entry.copies for entry in ledger.rolled) > MOST_DESCRIBED for ledger in ledgers):
            raise BadInput(f"{config} describes more than {MOST_DESCRIBED:,} tensors")
        return ledgers, []
    except BadInput as error:
        if overrides:
            raise  # the user asked for that config to be read
        return [], [f"the config beside the checkpoint was not used: {error}"]


class _ByConfig:
    """Stored entries with what the config says of them: roles, ties, and where the two disagree."""

    def __init__(self, stored: list[Entry], candidates: list[Ledger]) -> None:
        # One model, two layouts: the one that agrees best with the names is the file's.
        pairs = [(match(stored, ledger), ledger) for ledger in candidates]
        self.found, self.described = max(pairs, key=lambda pair: pair[0].agreeing)
        self.notes: list[str] = []
        self.relations: dict[str, str] = {}
        self.entries = self._told()
        tied_away = {name for tie in self.described.ties for name in self._fold(tie)}
        self.mismatches = {
            "missing": [name for name in self.found.missing if name not in tied_away],
            "unexpected": [
                single.name
                for real, told in self.found.pairs
                if told is None and not real.buffer
                for single in real.unrolled()
            ],
            "misshaped": self.found.misshaped,
        }
        misshaped = {line.split(":", 1)[0] for line in self.found.misshaped}
        self.mismatches["unexpected"] = [name for name in self.mismatches["unexpected"] if name not in misshaped]
        self.notes += mismatch_notes(self.mismatches)
        buffers = sum(real.copies for real, told in self.found.pairs if told is None and real.buffer)
        if buffers:
            self.notes.append(f"{buffers} stored tensors are buffers: the config's model has no such parameters")

    def _told(self) -> list[Entry]:
        order = {told.name: place for place, told in enumerate(self.described.rolled)}
        entries = [
            (
                order.get(told.name, len(order)) if told else len(order),
                real._replace(role=told.role, active=told.active, buffer=told.buffer) if told else real,
            )
            for real, told in self.found.pairs
        ]
        return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]

    def _fold(self, tie: Tie) -> list[str]:
        """Fold a described tie into the entries; returns its described names that are absent, and rightly so.

        Loaders rebuild an absent name from the present one. Two present ones are told apart by their
        values alone, which a header does not hold.
        """
        places = {entry.name: place for place, entry in enumerate(self.entries)}
        present = [name for name in map(self.found.real_name, tie.names) if name in places]
        if not present:
            return []
        holder = present[0]
        for name in present[1:]:
            entry = self.entries[places[name]]
            self.entries[places[name]] = entry._replace(storage=holder, unique=0)
            self.relations[holder] = "unknown"
            self.notes.append(
                f"{name} is stored although the config ties it to {holder}: counted once, as the config's model has"
                " it; whether the two hold equal values, their headers cannot tell"
            )
        absent = [name for name in tie.names if self.found.real_name(name) not in places]
        roles = {entry.name: entry.role for entry in self.described.rolled}
        held = self.entries[places[holder]]
        for name in absent:
            real = self.found.real_name(name)
            self.entries.append(held._replace(name=real, storage=holder, unique=0, role=roles[name]))
        return absent


def _aliases(entries: list[Entry], metadata: Mapping[str, str], stored: set[str]) -> list[Entry]:
    """`__metadata__` maps a name that was dropped on saving to the stored name that it shares with."""
    # Most metadata says {"format": "pt"} and names nothing: told before a large checkpoint is unrolled.
    named = {name for name in metadata.values() if name in stored}
    if not named:
        return []
    singles = {single.name: single for entry in entries for single in entry.unrolled()}
    return [
        singles[name]._replace(name=alias, unique=0, role=role_of(alias))
        for alias, name in metadata.items()
        if name in named and alias not in singles
    ]


def _notes_by_name(entries: list[Entry]) -> list[str]:
    """What a reader should know of a count that no config backs."""
    notes = []
    buffers = [entry for entry in entries if entry.buffer]
    if buffers:
        example = next(buffers[0].unrolled()).name
        notes.append(
            f"{sum(entry.copies for entry in buffers)} stored tensors are taken as buffers by their well-known names,"
            f" not as parameters (such as {example}): {sum(e.size * e.copies for e in buffers):,} elements"
        )
    present = {entry.role for entry in entries}
    if "token_embedding" in present and "head" not in present:
        notes.append("no LM head is stored: it is tied to the token embedding, or there is none; a config would tell")
    if "experts" in present:
        notes.append("active parameters are unknown: a config would say how many experts a token uses")
    return notes


def _integer_note(entries: list[Entry]) -> list[str]:
    packed = [entry for entry in entries if not entry.buffer and "int" in entry.dtype and len(entry.shape) > 1]
    if not packed:
        return []
    count = sum(entry.copies for entry in packed)
    return [f"{count} tensors hold integers, as packed quantised weights do: they are counted as stored elements"]


def mismatch_notes(mismatches: Mapping[str, list[str]]) -> list[str]:
    """One line for each way in which real tensors and a config disagree."""
    said = {
        "missing": "described by the config and not there",
        "unexpected": "there and not described by the config",
        "misshaped": "of another shape than the config says",
    }
    return [
        f"{len(names)} {'tensor is' if len(names) == 1 else 'tensors are'} {said[kind]}: {'; '.join(names[:3])}"
        + ("; …" if len(names) > 3 else "")
        for kind, names in mismatches.items()
        if names
    ]
