"""Files that are cut, changed or made to harm: whatever they hold, a reader counts them or says in one line why not."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import tallystick
from tallystick import BadInput

# More than CI needs, for a search after a change: TALLYSTICK_MUTATIONS=1000000 draws anew in every run.
MUTATIONS = os.environ.get("TALLYSTICK_MUTATIONS")

# What programs make of lengths, counts and places, and what pickles and zips are made of.
_NUMBERS = [
    n.to_bytes(width, "little") for width in (1, 2, 4, 8) for n in (0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1)
]
_PIECES = [
    *_NUMBERS,
    *(bytes([code]) for code in b"(.0129FIJKLMNQRSTUVXabcdeghijlopqrstu}\x80\x85\x86\x87\x8a\x8c\x93\x94\x95"),
]


def refusal(path: Path) -> str:
    """Why a file is refused; "" where it is counted. Any other error fails the test, as does more than one line."""
    try:
        ledger = tallystick.count(path)
        ledger.to_dict()
    except BadInput as error:
        line = str(error)
        assert line.isprintable(), line
        assert len(line) < 700 + 2 * len(str(path)), line
        return line
    return ""


def mutations(content: bytes, *, most: int) -> Iterator[bytes]:
    """Contents changed at a few places: bits, pieces put in, taken out or moved, the end cut off."""
    draw = random.Random(None if MUTATIONS else len(content))
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


def survives(path: Path, content: bytes, *, most: int) -> None:
    """Fail unless each mutation of a file's content is counted or refused, and some are refused."""
    refused = 0
    for changed in mutations(content, most=most):
        path.write_bytes(changed)
        try:
            refused += bool(refusal(path))
        except BaseException:
            path.with_name("failing" + path.suffix).write_bytes(changed)
            raise
    assert refused


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
