"""The tokenizer of a run: bytes, a BPE trained on the run's own text, or one that exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tallystick.errors import BadInput, quoted
from tallystick.models.tokens import BYTES, Tokenizer

SAMPLE = 50_000_000  # characters that a BPE is trained on, the first of the text


def tokenizer_of(word: str, texts: Callable[[], Iterable[str]]) -> Tokenizer:
    """The tokenizer that a config names.

    Args:
        word: ``bytes``; ``bpe:4096``, trained on the text with so many entries; or a path to a `tokenizer.json` or a folder.
        texts: of the data, begun anew by each call.

    Raises:
        BadInput: for another word, and a path that leads to none.
    """
    if word == BYTES:
        return Tokenizer.bytes()
    kind, _, size = word.partition(":")
    if kind == "bpe":
        if not size.isdecimal():
            raise BadInput(f"tokenizer {quoted(word)} does not say how many entries: bpe:4096", code="bad-value")
        return Tokenizer.trained(_first(texts()), int(size))
    path = Path(word)
    if not path.exists():
        raise BadInput(
            f"tokenizer {quoted(word)} is neither bytes, nor bpe:ENTRIES, nor a path that leads anywhere",
            code="not-found",
        )
    return Tokenizer.load(path)


def _first(texts: Iterable[str]) -> Iterator[str]:
    left = SAMPLE
    for text in texts:
        if left <= 0:
            return
        yield text[:left]
        left -= len(text)
