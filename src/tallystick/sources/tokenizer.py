"""The tokenizer beside a config or a checkpoint: whether the embedding has a row for each of its ids."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput
from tallystick.ledger import Ledger
from tallystick.sources.files import read_text

TOKENIZER = "tokenizer.json"

# Keys whose values hold the ids. Inside a string their quotes would be escaped, so what is found is a key; and most of
# such a file, up to 20 MB of merges, need not be parsed.
_KEYS = {key: re.compile(rf'(?<!\\)"{key}"\s*:\s*') for key in ("vocab", "added_tokens")}


def row_notes(folder: Path, ledger: Ledger) -> tuple[str, ...]:
    """A note where the tokenizer of a folder and the rows of the token embedding differ; none where they agree."""
    path = folder / TOKENIZER
    embedding = next(
        (entry for entry in ledger.rolled if entry.role == "token_embedding" and len(entry.shape) == 2), None
    )
    if embedding is None or not path.exists():
        return ()
    try:
        ids = _ids(read_text(path), path)
    except BadInput as error:
        return (f"the tokenizer beside it was not used: {error}",)
    rows, width = (int(size) for size in embedding.shape)
    needed = max(ids, default=rows - 1) + 1
    said = f"{embedding.name} has {rows:,} rows, and the ids of {TOKENIZER} end at {needed - 1:,}:"
    if needed > rows:
        return (f"{said} looking up the last {needed - rows:,} fails; model.resize_token_embeddings makes room",)
    if needed < rows:
        more = rows - needed
        return (f"{said} {more:,} rows more ({more * width:,} parameters), as padding leaves, which no token uses",)
    return ()


def rows_needed(folder: Path) -> int:
    """How many rows the ids of a folder's tokenizer ask for; 0 where there is none."""
    path = folder / TOKENIZER
    return max(_ids(read_text(path), path), default=-1) + 1 if path.exists() else 0


def _ids(text: str, path: Path) -> list[int]:
    """Every id that a tokenizer.json gives: its model's, as a table or a list with scores, and those added to them."""
    vocabulary, added = (_value(text, key, path) for key in ("vocab", "added_tokens"))
    ids: list[Any] = [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    if isinstance(vocabulary, dict):
        ids += vocabulary.values()
    elif isinstance(vocabulary, list):
        ids += range(len(vocabulary))
    return [number for number in ids if type(number) is int]


def _value(text: str, key: str, path: Path) -> Any:
    """What stands under a key; None where there is no such key."""
    found = _KEYS[key].search(text)
    if found is None:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, found.end())[0]
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is not JSON after {key}") from None
