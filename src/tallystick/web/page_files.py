"""The files that the page holds: a dropped file or folder, or a repository of the hub.

The page sends their names and sizes. An answer that needs pieces names them, and the page sends
these with its next request.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from tallystick.core.config import LARGEST
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, shown
from tallystick.files.given import GivenFiles
from tallystick.files.remote import Missing, Remote

MOST_FILES = 20_000  # of one source; the hub's largest repositories of weights have some hundreds
MOST_SOURCES = 4  # whose pieces are kept: the model, the one to compare with, and the ones before
MOST_AT_ONCE = 6_000_000  # bytes asked for in one reply; a request has room for them in base64

_CONFIGS = (".json", ".toml", ".yaml", ".yml")
_SOURCES: OrderedDict[str, GivenFiles] = OrderedDict()


def store_of(source: str, sizes: Mapping[str, Any], version: str = "") -> GivenFiles:
    """Return the store of a source, with the pieces that were handed in so far.

    Args:
        source: its name in messages and as a ledger's source.
        sizes: bytes of each file, by its name.
        version: differs if the files' contents do, such as a commit.

    Raises:
        BadInput: if these are not sizes of files.
    """
    if not sizes or len(sizes) > MOST_FILES:
        raise BadInput(f"{source} has {len(sizes):,} files, expected 1 to {MOST_FILES:,}", code="bad-value")
    for name, size in sizes.items():
        if type(size) is not int or not 0 <= size <= LARGEST:
            raise BadInput(f"the size of {name} is {shown(size)}, expected bytes", code="bad-value")
    key = json.dumps([source, sizes, version], sort_keys=True)
    if key not in _SOURCES:
        _SOURCES[key] = GivenFiles(source, sizes)
        if len(_SOURCES) > MOST_SOURCES:
            _SOURCES.popitem(last=False)
    _SOURCES.move_to_end(key)
    return _SOURCES[key]


def hand_in(store: GivenFiles, pieces: object) -> None:
    """Keep the pieces that came with a request: ``[[file, start, base64], …]``.

    Raises:
        BadInput: if they are not of this form.
    """
    if not isinstance(pieces, list):
        raise BadInput(f"pieces is {shown(pieces)}, expected a list", code="bad-value")
    for piece in pieces:
        try:
            name, start, encoded = piece
            content = base64.b64decode(encoded, validate=True)
            store.hand_in(str(name), int(start), content)
        except (TypeError, ValueError) as error:
            raise BadInput(f"a piece is not a file, a start and base64: {error}", code="bad-value") from None


def needed(missing: Missing) -> list[list[Any]]:
    """Return the first pieces to hand in next, as many as fit in a request."""
    found: list[list[Any]] = []
    left = MOST_AT_ONCE
    for name, start, length in missing.pieces:
        left -= length
        if found and left < 0:
            break
        found.append([name, start, length])
    return found


def ledger_of_files(store: GivenFiles, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """Return the ledger of a source's files.

    With overrides, its config alone is counted: tensors in a file cannot change.

    Args:
        store: the files.
        overrides: keys to set over the config.
        source: the name of the source.

    Raises:
        BadInput: if the files cannot be counted.
        Missing: if pieces of them are needed.
    """
    from tallystick.formats import is_weights
    from tallystick.sources import read_remote

    names = list(store.names("") or ())
    if len(names) == 1:
        if not is_weights(names[0]) and not names[0].lower().endswith(_CONFIGS):
            raise BadInput(
                f"{names[0]} is neither a config nor weights: open a config.json, .safetensors, .gguf, .pt, .bin, or a"
                " folder with them",
                code="unsupported",
            )
        return read_remote(Remote(store, names[0]), overrides, source=source)
    if overrides:
        return config_of_files(store, overrides, source=source)
    return read_remote(Remote(store, ""), {}, source=source)


def config_of_files(store: GivenFiles, overrides: Mapping[str, Any], *, source: str) -> Ledger:
    """Return the ledger that a source's config describes.

    Raises:
        BadInput: if there is no config, or it makes no model.
        Missing: if pieces of it are needed.
    """
    from tallystick.sources import read_remote_config

    return read_remote_config(Remote(store, ""), overrides, source=source)
