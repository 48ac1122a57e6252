"""Fingerprint the files that tokens were made from, and detect later changes.

Names and sizes are compared first. Modification times are only compared for equality, since a
clock may be set back and a copy has new times. If only times differ, the files are read once and
their digests decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, shown
from tallystick.training.corpus.documents import STDLIB, files_of
from tallystick.training.wholeness import digest_of


def texts_of(data: str) -> dict[str, Any]:
    """Return the number of files, their bytes, and digests of names and sizes, times, content."""
    found = _looked_at(data)
    return {**found, "content": _content(data)}


def refuse_changed(data: str, said: Mapping[str, Any] | None, folder: Path) -> None:
    """Raise BadInput if data changed since its tokens were made. Missing data is allowed.

    Args:
        data: see `documents`; Python's own library is not checked.
        said: the result of `texts_of` when the tokens were made; None from an older version.
        folder: folder of the tokens.

    Raises:
        BadInput: with the change.
    """
    if not said or data == STDLIB or not os.path.exists(data):
        return
    found = _looked_at(data)
    if found == {key: said.get(key) for key in found}:
        return
    if found["names"] != said.get("names"):
        how = f"it had {_shown(said)}, now {_shown(found)}"
    elif _content(data) != said.get("content"):
        how = "its files have the same names and sizes, but other content"
    else:
        return
    raise BadInput(
        f"{data} has changed since the tokens in {folder} were made: {how}; restore it, choose another"
        " out, or move it away to keep those tokens",
        code="changed",
    )


def _looked_at(data: str) -> dict[str, Any]:
    """Return the fingerprint that needs no reading of the files."""
    places = [(name, path.stat()) for path, name in _files(data)]
    return {
        "files": len(places),
        "bytes": sum(status.st_size for _, status in places),
        "names": _digest(f"{name}\0{status.st_size}" for name, status in places),
        "times": _digest(str(status.st_mtime_ns) for _, status in places),
    }


def _content(data: str) -> str:
    return _digest(digest_of(path) for path, _ in _files(data))


def _files(data: str) -> list[tuple[Path, str]]:
    return [] if data == STDLIB else list(files_of(Path(data)))


def _digest(texts: Iterable[str]) -> str:
    digest = blake2b(digest_size=16)
    for text in texts:
        digest.update(os.fsencode(text) + b"\0\0")
    return digest.hexdigest()


def _shown(said: Mapping[str, Any]) -> str:
    return f"{shown(said.get('files'))} files of {shown(said.get('bytes'))} bytes"
