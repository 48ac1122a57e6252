"""Weights that are not there, Git LFS pointers or nothing in their place: what config and index still tell."""

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

# Git LFS, docs/spec.md: lines of a key and a value; `size` is that of the file in bytes.
LARGEST_POINTER = 1024
_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)
_NUMBERED = re.compile(r"(.*-)(\d{5})-of-(\d{5})(\.safetensors|\.bin)")


class Absent(NamedTuple):
    """Files of a checkpoint, some of which are not what their names say, or not there."""

    files: tuple[str, ...]  # all that there should be
    pointers: Mapping[str, int]  # those in whose place there is a pointer, with the bytes that it says
    missing: tuple[str, ...]
    names: frozenset[str] = frozenset()  # of the tensors, where an index lists them


class Weights(NamedTuple):
    """The weights in a folder."""

    path: Location | None  # their file or index; None where there are none, or not all of them
    shards: Named | None = None  # what that index names, where it was read for this
    absent: Absent | None = None


def weights_in(folder: Location, names: Sequence[str]) -> Weights:
    """The weights in a folder, whose index is read once.

    Args:
        folder: the folder.
        names: those of its files.

    Raises:
        BadInput: where several files could be meant.
    """
    index: Named | None = None
    # Absent weights are counted from the config: there must be one, and next to an adapter it would be the base's.
    # A remote folder with all of its numbered shards needs no index to be fetched for this.
    if CONFIG in names and ADAPTER not in names and not (isinstance(folder, Remote) and _all_numbered(names)):
        formats = (_files_of(folder, names, ending) for ending in (".safetensors", ".bin"))
        index, files = next((found for found in formats if found[1]), (None, []))
        if absent := _absent(folder, names, index, files):
            return Weights(None, absent=absent)
    path = find_weights(folder, names)
    return Weights(path, index if path is not None and index is not None and index.name == path.name else None)


def _absent(folder: Location, names: Sequence[str], index: Named | None, files: Sequence[str]) -> Absent | None:
    """What of a checkpoint's files is not there; None where all is."""
    there = frozenset(names)
    missing = tuple(name for name in files if name not in there)
    here = [folder / name for name in files] if isinstance(folder, Path) else []  # elsewhere nobody serves pointers
    pointers = {path.name: size for path in here if (size := _pointed(path)) is not None}
    if not missing and not pointers:
        return None
    tensors = frozenset(name for held in index.values() for name in held) if index else frozenset()
    return Absent(tuple(files), pointers, missing, tensors)


def _all_numbered(names: Sequence[str]) -> bool:
    """Whether there are shards with numbers, and of each such checkpoint all of them."""
    there = frozenset(names)
    kinds = {(found[1], found[3], found[4]) for one in names if (found := _NUMBERED.fullmatch(one))}
    return bool(kinds) and all(
        f"{stem}{number:05}-of-{count}{ending}" in there
        for stem, count, ending in kinds
        for number in range(1, int(count) + 1)
    )


def _files_of(folder: Location, names: Sequence[str], ending: str) -> tuple[Named | None, list[str]]:
    """The files of a checkpoint in one format, there or not, and the index that lists them where there is one."""
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
    """The size that a Git LFS pointer says; None where a file is none."""
    try:
        if os.stat(path).st_size > LARGEST_POINTER:
            return None
        file, _ = open_regular(path)
    except (OSError, ValueError):  # BadInput among them
        return None
    with file:
        content = file.read(LARGEST_POINTER)
    said = _SIZE.search(content) if content.startswith(LFS_POINTER) else None
    return int(said[1]) if said else None


def ledger_without_weights(config: Location, absent: Absent, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """The ledger of a config whose weights are not there, with what pointers and index say of them."""
    values = read_json(config)
    ledger = ledger_of_config(values, overrides, source=source)
    said = _files_said(absent, ledger)
    return replace(
        ledger,
        notes=(*said, *_names_said(absent, values, overrides, source), *ledger.notes),
        evidence=replace(ledger.evidence, doubts=said),  # what the files tie is not known
    )


def _files_said(absent: Absent, ledger: Ledger) -> list[str]:
    notes = []
    total, there = len(absent.files), len(absent.files) - len(absent.missing)
    if absent.missing:
        notes.append(
            f"{there:,} of {total:,} files of weights are there, and not {_ranges(absent.missing)}: counted from the config"
        )
    if absent.pointers:
        size = sum(absent.pointers.values())
        several = f"{len(absent.pointers):,} of {total:,} files of weights are Git LFS pointers, together"
        which = several if total > 1 else f"{absent.files[0]} is a Git LFS pointer"
        notes.append(f"{which} to {size:,} bytes: counted from the config; `git lfs pull` fetches what is pointed to")
        needed = ledger.totals.get("stored_bytes") or ledger.totals["bytes"] or 0
        if len(absent.pointers) == total and abs(size - needed) > 0.01 * needed + 1_000_000:
            more, word = abs(size - needed), "more" if size > needed else "fewer"
            notes.append(
                f"that is {more:,} bytes {word} than the config's model takes: another dtype, or tensors that it does not have"
            )
    return notes


def _ranges(names: Sequence[str]) -> str:
    """Names of shards as runs of numbers.

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
    """Where an index and a native type's config name other tensors; shapes are in neither file."""
    if not absent.names or is_params(values):  # which name no tensor as Hugging Face does
        return []
    asked = resolve(values, overrides, source)
    if asked.family is None:
        return []
    rolled = [
        entry._replace(buffer=is_buffer(entry.name, (1, 1, 1, 1)))  # of masks, which have four dimensions, too
        for entry in roll_up((name, "float32", ()) for name in sorted(absent.names))
    ]
    told = match_config(rolled, layouts(asked), headless=asked.headless)
    found = {kind: names for kind, names in told.mismatches.items() if kind != "misshaped" and names}
    stored_twice = [note.partition(":")[0] for note in told.notes if "is stored although" in note]
    said = {
        "missing": "the config describes and the index does not name",
        "unexpected": "the index names and the config does not describe",
    }
    return stored_twice + [
        f"{len(names)} tensors {said[kind]}: {'; '.join(names[:3])}" + ("; …" if len(names) > 3 else "")
        for kind, names in found.items()
    ]
