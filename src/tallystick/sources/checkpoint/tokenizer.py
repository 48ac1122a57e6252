"""Compare the ids in tokenizer.json with the rows of the token embedding."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any

from tallystick.core.budget import current
from tallystick.core.config import TOKENIZER
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.files.texts import keep_json, read_bytes

_PIECE = 1 << 20  # bytes decoded at once

# Keys whose values hold the ids. Inside a string their quotes would be escaped, so each match is a
# key. The rest of the file, up to 20 MB of merges, need not be parsed.
_KEYS = {key: re.compile(rb'(?<!\\)"%s"\s*+:\s*+' % key.encode()) for key in ("vocab", "added_tokens")}
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PAIR = re.compile(rb"\s*+" + _STRING + rb"\s*+:\s*+(0|[1-9][0-9]{0,11})\s*+([,}])")  # an entry of most vocabularies
_INSIDE = rb'[^\[\]"]++|' + _STRING
_LIST = re.compile(rb"\[(?:%b|\[(?:%b)*+\])*+\]" % (_INSIDE, _INSIDE))  # a list, possibly of (token, score) lists


def row_notes(folder: Path, ledger: Ledger) -> tuple[str, ...]:
    """Return a note if a folder's tokenizer ids and the token embedding's rows differ.

    Args:
        folder: a local folder, with or without a tokenizer.json.
        ledger: the ledger of the model in that folder.
    """
    path = folder / TOKENIZER
    embedding = next(
        (entry for entry in ledger.rolled if entry.role == "token_embedding" and len(entry.shape) == 2), None
    )
    if embedding is None or not path.exists():
        return ()
    try:
        last = _last_id(path)
    except BadInput as error:
        return (f"its tokenizer was not used: {error}",)
    rows, width = (int(size) for size in embedding.shape)
    needed = rows if last is None else last + 1
    said = f"{embedding.name} has {rows:,} rows, but the ids of {TOKENIZER} end at {needed - 1:,}:"
    if needed > rows:
        return (f"{said} the last {needed - rows:,} ids have no row; call model.resize_token_embeddings",)
    if needed < rows:
        more = rows - needed
        return (f"{said} {more:,} extra rows ({more * width:,} parameters) that no token uses (padding)",)
    return ()


def rows_needed(folder: Path) -> int:
    """Return the number of embedding rows that a folder's tokenizer needs; 0 without a tokenizer.

    Raises:
        BadInput: if the tokenizer cannot be read.
    """
    path = folder / TOKENIZER
    last = _last_id(path) if path.exists() else None
    return 0 if last is None else last + 1


def _last_id(path: Path) -> int | None:
    """Return the largest id in a tokenizer.json, from its vocabulary and added tokens, or None."""
    content = read_bytes(path)
    try:
        current().read(len(content))
        _check_utf8(content)
        added = _value(content, _KEYS["added_tokens"].search(content), "added_tokens", path)
        ids: list[Any] = (
            [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
        )
        found = _KEYS["vocab"].search(content)
        last = _last_of_table(content, found.end()) if found else None
        if last is None:
            vocabulary = _value(content, found, "vocab", path)
            if isinstance(vocabulary, dict):
                ids += vocabulary.values()
            elif isinstance(vocabulary, list):
                ids.append(len(vocabulary) - 1)
        else:
            ids.append(last)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text: byte {error.start} is not UTF-8", code="malformed") from None
    return max((number for number in ids if type(number) is int), default=None)


def _check_utf8(content: bytes) -> None:
    """Decode a text piece by piece and keep nothing.

    Raises:
        UnicodeDecodeError: if the text is not UTF-8.
    """
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _PIECE):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(content[start : start + _PIECE], final=start + _PIECE >= len(content))
        except UnicodeDecodeError as error:
            error.start += start - pending
            raise


def _last_of_table(content: bytes, position: int) -> int | None:
    """Return the largest value of an object whose values are all integers, else None."""
    budget, largest, after = current(), -1, b","
    if not content.startswith(b"{", position):
        return None
    position += 1
    while after == b",":
        pair = _PAIR.match(content, position)
        if pair is None:
            return None
        budget.step()
        largest, after, position = max(largest, int(pair[1])), pair[2], pair.end()
    return largest


def _value(content: bytes, found: re.Match[bytes] | None, key: str, path: Path) -> Any:
    """Parse the JSON value after a key; return None if there is no such key."""
    if found is None:
        return None
    whole = _LIST.match(content, found.end())
    end = whole.end() if whole else len(content)
    try:
        current().keep(2 * (end - found.end()), "its text")
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    text = content[found.end() : end].decode()
    keep_json(text, path)
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is not JSON after {key}", code="malformed") from None
