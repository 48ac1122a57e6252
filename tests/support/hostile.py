"""Files that are cut, changed or made to harm: whatever they hold, a reader counts them or says in
one line why not.
"""

from __future__ import annotations

import json
import os
import random
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import measurements
import tallystick
from tallystick import BadInput
from tallystick.formats.shards import read_checkpoint

# More than CI needs, for a search after a change: TALLYSTICK_MUTATIONS=1000000 draws anew in every
# run.
MUTATIONS = os.environ.get("TALLYSTICK_MUTATIONS")

# What programs make of lengths, counts and places, and what pickles and zips are made of.
_NUMBERS = [
    n.to_bytes(width, "little") for width in (1, 2, 4, 8) for n in (0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1)
]
_PIECES = [
    *_NUMBERS,
    *(bytes([code]) for code in b"(.0129FIJKLMNQRSTUVXabcdeghijlopqrstu}\x80\x85\x86\x87\x8a\x8c\x93\x94\x95"),
]


# What may stand in JSON where a reader expects something else.
_VALUES = [
    *("null", "true", "false", "0", "1", "2", "-1", "1.5", "-0.0", "1e308", "1e400", "NaN", "Infinity", "-Infinity"),
    *(str(2**bits + more) for bits in (15, 31, 32, 40, 63, 64, 200) for more in (-1, 0)),
    *("9" * 4000, "9" * 5000, "[]", "{}", '""', '"a"', '"é😀"', '"../a"', '"a\\u0000\\u001b[2J\\n\\u202e"', '"\\ud800"', f'"{"N" * 5000}"'),
    *('[[1, null], {"a": "b"}]', f"[{'1, ' * 20_000}1]", *("[" * depth + "]" * depth for depth in (9, 300, 980, 100_000))),
]  # fmt: skip
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[\[{]')


def refusal(source: Path | str, read: Callable[[Any], object] | None = None) -> str:
    """Why a file is refused; "" where it is counted. Any other error fails the test, as does more
    than one line.

    Args:
        source: what is counted.
        read: the reader alone, in place of the whole count.
    """
    try:
        if read:
            read(source)
        else:
            ledger = tallystick.count(source)
            ledger.to_dict()
            assert all(note.isprintable() and len(note) < 2000 + len(str(source)) for note in ledger.notes), (
                ledger.notes
            )
    except BadInput as error:
        line = str(error)
        assert line.isprintable(), line
        assert len(line) < 700 + 2 * len(str(source)), line
        return line
    return ""


def _drawer(size: int, *, by_commit: bool) -> random.Random:
    """The same draws for contents of one size: in every run, or in those of one commit."""
    return random.Random(None if MUTATIONS else f"{measurements.seed()} {size}" if by_commit else size)


def mutations(content: bytes, *, most: int, by_commit: bool = False) -> Iterator[bytes]:
    """Contents changed at a few places: bits, pieces put in, taken out or moved, the end cut
    off; other ones in each commit where each takes long.
    """
    draw = _drawer(len(content), by_commit=by_commit)
    for _ in range(int(MUTATIONS or most)):
        changed = bytearray(content)
        for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
            place = draw.randrange(len(changed) + 1)
            match draw.randrange(6):
                case 0 if place < len(changed):
                    changed[place] ^= 1 << draw.randrange(8)
                case 1 if place < len(changed):
                    changed[place] = draw.randrange(256)
                case 2:
                    piece = draw.choice(_PIECES)
                    changed[place : place + len(piece)] = piece
                case 3:
                    changed[place:place] = draw.choice(_PIECES)
                case 4:
                    del changed[place : place + draw.randrange(1, 9)]
                case _:
                    start = draw.randrange(len(changed) + 1)
                    changed[place:place] = changed[start : start + draw.randrange(1, 40)]
            if not changed:
                break
        yield bytes(changed[: draw.randrange(len(changed) + 1)] if draw.random() < 0.02 else changed)


def rewritten(document: Any, *, most: int, by_commit: bool = False) -> Iterator[bytes]:
    """A JSON document changed at a few places: values of other kinds and sizes, keys of others,
    keys that come twice; other ones in each commit where each takes long.
    """
    text = json.dumps(document)
    places = [(one.start(), json.JSONDecoder().raw_decode(text, one.start())[1]) for one in _VALUE.finditer(text)]
    values = [text[start:end] for start, end in places]
    words = [value for value in values if value.startswith('"')]
    draw = _drawer(len(text), by_commit=by_commit)
    for _ in range(int(MUTATIONS or most)):
        changed, beyond = text, len(text)
        for start, end in sorted(draw.choices(places, k=draw.choice((1, 1, 2, 3))), reverse=True):
            old, key = text[start:end], text.startswith(":", end)
            if end > beyond:
                continue  # around what was changed already
            new = draw.choice(words if key else (draw.choice(_VALUES), draw.choice(values), _near(old, draw)))
            if key and draw.random() < 0.3:
                new = f"{old}: {draw.choice(_VALUES)}, {new}"
            changed, beyond = changed[:start] + new + changed[end:], start
        yield changed.encode()


def _near(value: str, draw: random.Random) -> str:
    """Another number that is not far from one; anything else as it is, with something around it."""
    try:
        number = int(value)
    except ValueError:
        return draw.choice((f"[{value}]", f'{{"a": {value}}}', f"[{value}, {value}]"))
    return str(draw.choice((number + 1, number - 1, 2 * number, number // 2, -number, number * 10**6, number + 0.5)))


def survives(
    path: Path,
    inputs: Iterable[bytes],
    *,
    source: Path | str | None = None,
    put: Callable[[bytes], object] | None = None,
    read: Callable[[Any], object] | None = read_checkpoint,
) -> int:
    """How many inputs are refused. Fail unless each of the others is counted; what fails is kept
    beside the path.

    Args:
        path: where the inputs are written.
        inputs: contents, or what `put` makes of them.
        source: what is counted, where it is not the path.
        put: what puts an input in its place, where it is not written as it is.
        read: the reader that takes most inputs of a long search, in place of the whole count.
    """
    refused = 0
    for number, changed in enumerate(inputs):
        (put or path.write_bytes)(changed)
        try:
            refused += bool(refusal(source or path, read if MUTATIONS and number % 16 else None))
        except BaseException:
            path.with_name("failing" + path.suffix).write_bytes(changed)
            raise
    return refused


def refused_at_every_byte(path: Path, content: bytes) -> None:
    """Fail unless a file that ends before its last byte is refused, wherever it ends."""
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert refusal(path), length


def memory_of(path: Path) -> int:
    """The most bytes that Python's own memory takes while a file is read or refused."""
    tracemalloc.start()
    try:
        refusal(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
