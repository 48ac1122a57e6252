"""Token files of a corpus and their listing, validated when read.

train-00000.tokens       a header of 4,096 bytes, then ids of 2 or 4 bytes
whole.json               the listing: data, tokenizer, and the files with their digests
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy

from tallystick.errors import BadInput
from tallystick.files.local import open_regular
from tallystick.files.texts import read_json

HEADER = 4096
MAGIC = "tallystick tokens 1"
WHOLE = "whole.json"
SPLITS = ("train", "validation")
DTYPES = ("<u2", "<u4")
_BLOCK = 1 << 20  # tokens
_MOST = 1 << 48  # limit of tokens or text bytes in a listing


@dataclass(frozen=True)
class Split:
    """One split in the listing."""

    shards: tuple[tuple[str, int, str], ...]  # name, token count and digest of each file
    bytes: int  # of the text

    @property
    def identity(self) -> list[Any]:
        """Total tokens, and a digest of the files' counts and digests."""
        digest = blake2b(json.dumps([shard[1:] for shard in self.shards]).encode(), digest_size=16)
        return [sum(count for _, count, _ in self.shards), digest.hexdigest()]


@dataclass(frozen=True)
class Listing:
    """The listing of a folder of token files."""

    made_from: dict[str, Any]
    texts: dict[str, Any] | None  # fingerprint of the source files; None in an older version
    tokenizer: str  # its fingerprint
    splits: dict[str, Split]


def listing_of(folder: Path) -> Listing:
    """Read the listing of a folder of token files.

    Raises:
        BadInput: if it has another structure, or names files elsewhere.
    """
    said = read_json(folder / WHOLE)
    try:
        made_from, tokenizer, texts = said["made_from"], said["tokenizer"], said.get("texts")
        splits = {split: _split(split, said[split]) for split in SPLITS}
        if not isinstance(made_from, dict) or not isinstance(tokenizer, str) or not isinstance(texts, dict | None):
            raise TypeError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"{folder / WHOLE} was modified: remove {folder} to make it again", code="malformed") from None
    return Listing(made_from, texts, tokenizer, splits)


def _split(split: str, said: dict[str, Any]) -> Split:
    shards, size = said["shards"], said["bytes"]
    if not isinstance(shards, list) or not _is_count(size) or not (size or not shards):
        raise TypeError
    for name, count, digest in shards:
        if (
            not isinstance(digest, str)
            or not _is_count(count)
            or not re.fullmatch(split + r"-[0-9]{5,9}\.tokens", name)
        ):
            raise TypeError
    return Split(tuple((name, count, digest) for name, count, digest in shards), size)


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number < _MOST


def mapped(path: Path, count: int, digest: str, entries: int) -> numpy.ndarray[Any, Any]:
    """Return a file's tokens, memory-mapped, after one check of all of them in blocks.

    Args:
        path: path of the file.
        count: number of tokens that it must hold.
        digest: digest of the tokens.
        entries: size of the tokenizer's vocabulary; every id must be smaller.

    Raises:
        BadInput: if the file is not regular, truncated or changed, or has an id that the
            tokenizer does not have.
    """
    wrong = BadInput(f"{path} was modified: remove its folder to make it again", code="malformed")
    if path.is_symlink():
        raise wrong
    file, size = open_regular(path)
    with file:
        dtype = _dtype(file.read(HEADER))
    if dtype is None:
        raise BadInput(f"{path} is not a complete token file: remove its folder to make it again", code="malformed")
    if size != HEADER + count * dtype.itemsize:
        raise wrong
    if not count:
        return numpy.empty(0, dtype)
    try:
        tokens = numpy.memmap(path, dtype=dtype, mode="r", offset=HEADER, shape=(count,))
    except (OSError, ValueError):  # changed in the meantime
        raise wrong from None
    found = blake2b(digest_size=16)
    highest = 0
    for start in range(0, count, _BLOCK):
        block = tokens[start : start + _BLOCK]
        found.update(block.data)
        highest = max(highest, int(block.max()))
    if found.hexdigest() != digest:
        raise wrong
    if highest >= entries:
        raise BadInput(
            f"{path} holds the id {highest:,}, but the tokenizer has {entries:,} entries: remove its folder",
            code="mismatch",
        )
    return tokens


def _dtype(header: bytes) -> numpy.dtype[Any] | None:
    """Return the dtype in a header; None if the header is invalid."""
    try:
        said = json.loads(header)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("kind") != MAGIC or said.get("dtype") not in DTYPES:
        return None
    return numpy.dtype(said["dtype"])
