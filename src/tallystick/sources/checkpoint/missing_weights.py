"""Count from config and index when weights are missing or are Git LFS pointers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.core.config import CONFIG
from tallystick.core.ledger import Ledger
from tallystick.errors import quoted
from tallystick.files.local import LFS_POINTER, open_regular
from tallystick.files.remote import Location, Remote
from tallystick.files.texts import read_json
from tallystick.formats.folder import find_weights, is_main
from tallystick.formats.shards import Named, named_in
from tallystick.sources.checkpoint.match_config import match_config
from tallystick.sources.checkpoint.peft import CONFIG as ADAPTER
from tallystick.sources.checkpoint.rollup import roll_up
from tallystick.sources.configs.config import layouts
from tallystick.sources.configs.other_configs import is_params
from tallystick.sources.configs.resolve import resolve
from tallystick.sources.quantized.from_config import ledger_of_config
from tallystick.sources.roles.from_names import is_buffer

# Git LFS, docs/spec.md: lines of a key and a value; `size` is the file's size in bytes.
LARGEST_POINTER = 1024
_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)
_NUMBERED = re.compile(r"(.*-)(\d{5})-of-(\d{5})(\.safetensors|\.bin)")


class Absent(NamedTuple):
    """Files of a checkpoint, of which some are missing or Git LFS pointers."""

    files: tuple[str, ...]  # all expected files
    pointers: Mapping[str, int]  # Git LFS pointer files -> size of the real file in bytes
    missing: tuple[str, ...]
    names: frozenset[str] = frozenset()  # tensor names, if an index lists them


class Weights(NamedTuple):
    """The weights in a folder."""

    path: Location | None  # the file or index; None if there are no weights or some are missing
    shards: Named | None = None  # the content of the index, if it was read
    absent: Absent | None = None


def weights_in(folder: Location, names: Sequence[str]) -> Weights:
    """Find the weights in a folder; an index is read once.

    Args:
        folder: the folder.
        names: the names of the folder's files.

    Raises:
        BadInput: if several files could be meant.
    """
    index: Named | None = None
    # Missing weights are counted from the config, so there must be one. Next to an adapter it is
    # the base model's. A remote folder with all numbered shards is complete; its index need not be
    # fetched for this.
    if CONFIG in names and ADAPTER not in names and not (isinstance(folder, Remote) and _all_numbered(names)):
        formats = (_files_of(folder, names, ending) for ending in (".safetensors", ".bin"))
        index, files = next((found for found in formats if found[1]), (None, []))
        if absent := _absent(folder, names, index, files):
            return Weights(None, absent=absent)
    path = find_weights(folder, names)
    return Weights(path, index if path is not None and index is not None and index.name == path.name else None)


def _absent(folder: Location, names: Sequence[str], index: Named | None, files: Sequence[str]) -> Absent | None:
    """Return the missing files and Git LFS pointers of a checkpoint, or None if it is complete."""
    there = frozenset(names)
    missing = tuple(name for name in files if name not in there)
    here = [folder / name for name in files] if isinstance(folder, Path) else []  # no remote host serves pointers
    pointers = {path.name: size for path in here if (size := _pointed(path)) is not None}
    if not missing and not pointers:
        return None
    tensors = frozenset(name for held in index.values() for name in held) if index else frozenset()
    return Absent(tuple(files), pointers, missing, tensors)


def _all_numbered(names: Sequence[str]) -> bool:
    """Return whether there are numbered shards, and every such set is complete."""
    there = frozenset(names)
    kinds = {(found[1], found[3], found[4]) for one in names if (found := _NUMBERED.fullmatch(one))}
    return bool(kinds) and all(
        f"{stem}{number:05}-of-{count}{ending}" in there
        for stem, count, ending in kinds
        for number in range(1, int(count) + 1)
    )


def _files_of(folder: Location, names: Sequence[str], ending: str) -> tuple[Named | None, list[str]]:
    """Return the index and the expected files of a checkpoint in one format, present or not."""
    single = f"{'model' if ending == '.safetensors' else 'pytorch_model'}{ending}"
    indexes = sorted((one for one in names if one.endswith(f"{ending}.index.json")), key=lambda one: single not in one)
    if indexes and (single not in names or indexes[0] == f"{single}.index.json"):
        index = named_in(folder / indexes[0])
        return index, sorted(index)
    if single in names:
        return None, [single]
    numbered = next((found for one in names if one.endswith(ending) and (found := _NUMBERED.fullmatch(one))), None)
    if numbered:
        stem, _, count, _ = numbered.groups()
        return None, [f"{stem}{number:05}-of-{count}{ending}" for number in range(1, int(count) + 1)]
    return None, [one for one in names if one.endswith(ending) and (ending == ".safetensors" or is_main(one))]


def _pointed(path: Path) -> int | None:
    """Return the size in bytes that a Git LFS pointer states; None for any other file."""
    try:
        if os.stat(path).st_size > LARGEST_POINTER:
            return None
        file, _ = open_regular(path)
    except (OSError, ValueError):  # BadInput is a ValueError
        return None
    with file:
        content = file.read(LARGEST_POINTER)
    said = _SIZE.search(content) if content.startswith(LFS_POINTER) else None
    return int(said[1]) if said else None


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
        before = _NUMBERED.fullmatch(runs[-1][-1]) if runs else None
        now = _NUMBERED.fullmatch(name)
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
    if not absent.names or is_params(values):  # params.json checkpoints use other tensor names
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
