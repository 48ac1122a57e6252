"""Seal a checkpoint's files with digests, and verify them before they are read.

`whole.json` names each file with its digest. It may be damaged or malicious, so no path is built
from it: the folder is listed, and the names found are looked up. Links, pipes and devices are
never opened.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path

from tallystick.errors import BadInput, code_of, quoted, shown
from tallystick.files.local import open_regular
from tallystick.files.texts import read_json

WHOLE = "whole.json"
READ = (".safetensors", ".json")  # the files that are read from a checkpoint's folder
_BLOCK = 1 << 20  # bytes


def seal(folder: Path) -> None:
    """Write `whole.json`, with the digest of each file in the folder."""
    digests = {name: digest_of(path) for name, path in sorted(_files(folder).items())}
    (folder / WHOLE).write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def refuse_torn(folder: Path, *needed: str) -> None:
    """Raise BadInput unless a sealed folder is intact; reads every file once, in blocks.

    Args:
        folder: folder of a checkpoint.
        needed: names of files that must be there.

    Raises:
        BadInput: if a file is missing, changed, not regular, or was added after the seal.
    """
    try:
        found = _files(folder)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror or error}", code=code_of(error)) from None
    if WHOLE not in found:
        raise BadInput(f"{folder} has no regular file {WHOLE}", code="incomplete")
    digests = read_json(found.pop(WHOLE))
    if not isinstance(digests, dict):
        raise BadInput(f"{folder / WHOLE} holds {shown(digests)}, expected a digest for each file", code="malformed")
    for name in needed:
        if name not in digests:
            raise BadInput(f"{folder / WHOLE} does not name {name}", code="incomplete")
    for name in digests:
        if name not in found:
            raise BadInput(f"{folder} holds no regular file {quoted(name)}, which its {WHOLE} names", code="incomplete")
    for name in found:
        if name not in digests and name.endswith(READ):
            raise BadInput(f"{folder} holds {quoted(name)}, which its {WHOLE} does not name", code="incomplete")
    for name, digest in digests.items():
        if digest_of(found[name]) != digest:
            raise BadInput(f"{found[name]} was modified after it was written", code="malformed")


def digest_of(path: Path) -> str:
    """Return the digest of a regular file, up to its size when opened."""
    digest = blake2b(digest_size=16)
    if path.is_file() and not path.stat().st_size:
        return digest.hexdigest()
    file, left = open_regular(path)
    with file:
        while left and (block := file.read(min(left, _BLOCK))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def _files(folder: Path) -> dict[str, Path]:
    """Return the regular files of a folder and its direct subfolders, by relative name."""
    found = {}
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            inside = (one for one in os.scandir(entry.path) if one.is_file(follow_symlinks=False))
            found.update({f"{entry.name}/{one.name}": Path(one.path) for one in inside})
        elif entry.is_file(follow_symlinks=False):
            found[entry.name] = Path(entry.path)
    return found
