"""Find the weights in a folder, and which of their files are missing or Git LFS pointers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tallystick.core.config import ADAPTER_CONFIG, CONFIG
from tallystick.files.local import LFS_POINTER, open_regular
from tallystick.files.remote import Location, Remote
from tallystick.formats.folder import find_weights, is_main
from tallystick.formats.shards import Named, named_in

# Git LFS, docs/spec.md: lines of a key and a value; `size` is the file's size in bytes.
LARGEST_POINTER = 1024
_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)
NUMBERED = re.compile(r"(.*-)(\d{5})-of-(\d{5})(\.safetensors|\.bin)")


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
    if CONFIG in names and ADAPTER_CONFIG not in names and not (isinstance(folder, Remote) and _all_numbered(names)):
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
    kinds = {(found[1], found[3], found[4]) for one in names if (found := NUMBERED.fullmatch(one))}
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
    numbered = next((found for one in names if one.endswith(ending) and (found := NUMBERED.fullmatch(one))), None)
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
