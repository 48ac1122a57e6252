"""Get a run's tokenizer: bytes, a BPE trained on the run's text, or an existing one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tallystick.errors import BadInput, quoted
from tallystick.models.tokens import BYTES, Tokenizer

SAMPLE = 50_000_000  # characters at the start of the text that a BPE is trained on


def tokenizer_of(word: str, texts: Callable[[], Iterable[str]]) -> Tokenizer:
    """Return the tokenizer that a config names.

    Args:
        word: ``bytes``; ``bpe:4096``, a BPE of that size trained on the text; or a path to a
            `tokenizer.json` or a folder with one.
        texts: returns the texts of the data, from the start in each call.

    Raises:
        BadInput: if the word is none of these, or the path does not exist.
    """
    if word == BYTES:
        return Tokenizer.bytes()
    kind, _, size = word.partition(":")
    if kind == "bpe":
        if not size.isdecimal():
            raise BadInput(f"tokenizer {quoted(word)} lacks a size, such as bpe:4096", code="bad-value")
        return Tokenizer.trained(_first(texts()), int(size))
    path = Path(word)
    if not path.exists():
        raise BadInput(
            f"tokenizer {quoted(word)} is neither bytes, bpe:ENTRIES nor an existing path",
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
