"""Count from config and index when weights are missing or are Git LFS pointers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tallystick.core.ledger import Ledger
from tallystick.errors import quoted
from tallystick.files.remote import Location
from tallystick.files.texts import read_json
from tallystick.formats.folder_weights import NUMBERED, Absent
from tallystick.sources.checkpoint.match_config import match_config
from tallystick.sources.checkpoint.rollup import roll_up
from tallystick.sources.config_ledger import ledger_of_config
from tallystick.sources.configs.config import layouts
from tallystick.sources.configs.resolve import PARAMS, other_kind, resolve
from tallystick.sources.roles.from_names import is_buffer


def ledger_without_weights(config: Location, absent: Absent, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """Return the ledger of a config whose weights are missing, with notes from pointers and index.

    Args:
        config: the path of the config.
        absent: the missing files and pointers.
        overrides: keys to set over the config.
        source: the user's name for the folder, for messages.

    Raises:
        BadInput: if the config cannot be read.
    """
    values = read_json(config)
    ledger = ledger_of_config(values, overrides, source=source)
    said = _files_said(absent, ledger)
    return replace(
        ledger,
        notes=(*said, *_names_said(absent, values, overrides, source), *ledger.notes),
        evidence=replace(ledger.evidence, doubts=said),  # the ties in the files are unknown
    )


def _files_said(absent: Absent, ledger: Ledger) -> list[str]:
    notes = []
    total, there = len(absent.files), len(absent.files) - len(absent.missing)
    if absent.missing:
        notes.append(
            f"{there:,} of {total:,} weight files are present, not {_ranges(absent.missing)}: counted from the config"
        )
    if absent.pointers:
        size = sum(absent.pointers.values())
        several = f"{len(absent.pointers):,} of {total:,} weight files are Git LFS pointers, together"
        which = several if total > 1 else f"{absent.files[0]} is a Git LFS pointer"
        notes.append(f"{which} to {size:,} bytes: counted from the config; run `git lfs pull` for the files")
        needed = ledger.totals.get("stored_bytes") or ledger.totals["bytes"] or 0
        if len(absent.pointers) == total and abs(size - needed) > 0.01 * needed + 1_000_000:
            more, word = abs(size - needed), "more" if size > needed else "fewer"
            notes.append(f"{more:,} bytes {word} than the config's model: another dtype, or other tensors")
    return notes


def _ranges(names: Sequence[str]) -> str:
    """Join the names of consecutive shards into ranges.

    >>> _ranges(["m-00002-of-00004.bin", "m-00003-of-00004.bin", "m-00004-of-00004.bin"])
    "'m-00002-of-00004.bin' to 'm-00004-of-00004.bin'"
    """
    runs: list[list[str]] = []
    for name in names:
        before = NUMBERED.fullmatch(runs[-1][-1]) if runs else None
        now = NUMBERED.fullmatch(name)
        if before and now and int(before[2]) + 1 == int(now[2]):
            runs[-1].append(name)
        else:
            runs.append([name])
    said = [" to ".join(dict.fromkeys((quoted(run[0]), quoted(run[-1])))) for run in runs]
    return ", ".join(said[:3]) + (", …" if len(said) > 3 else "")


def _names_said(absent: Absent, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> list[str]:
    """Return notes on names that differ between the index and a native config.

    Neither holds shapes.
    """
    if not absent.names or other_kind(values) == PARAMS:  # params.json checkpoints use other tensor names
        return []
    asked = resolve(values, overrides, source)
    if asked.family is None:
        return []
    rolled = [
        entry._replace(buffer=is_buffer(entry.name, (1, 1, 1, 1)))  # four dimensions, so that masks count as buffers
        for entry in roll_up((name, "float32", ()) for name in sorted(absent.names))
    ]
    matched = match_config(rolled, layouts(asked), headless=asked.headless)
    found = {kind: names for kind, names in matched.mismatches.items() if kind != "misshaped" and names}
    stored_twice = [note.partition(":")[0] for note in matched.notes if "is stored although" in note]
    said = {
        "missing": "are in the config but not in the index",
        "unexpected": "are in the index but not in the config",
    }
    return stored_twice + [
        f"{len(names)} tensors {said[kind]}: {'; '.join(names[:3])}" + ("; …" if len(names) > 3 else "")
        for kind, names in found.items()
    ]
