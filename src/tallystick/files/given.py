"""Files whose pieces are handed in one by one: dropped on a page, or fetched by a browser.

A reader asks for the pieces that it needs. The first that is not there yet raises `Missing`, which
says where it is. The caller hands it in and asks again, so no file is ever read whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tallystick.errors import BadInput
from tallystick.files.remote import Missing, NotThere, Piece, Tally

MOST_GIVEN = 128_000_000  # bytes of all files of one source: a browser holds them in memory


class GivenFiles:
    """A store of files whose names and sizes are known, and whose pieces are handed in."""

    handed_in = True

    def __init__(self, source: str, sizes: Mapping[str, int]) -> None:
        self.tally = Tally()
        self._source, self._sizes = source, sizes
        self._pieces: dict[str, list[_Given]] = {}
        self._left = MOST_GIVEN

    def names(self, folder: str) -> Sequence[str] | None:
        """Return the files; only one folder is known."""
        return list(self._sizes) if not folder else []

    def shown(self, key: str) -> str:
        """Return the name of a file, or of what holds all files."""
        return key or self._source

    def read(self, key: str, start: int, length: int) -> Piece:
        """Return a piece of a file.

        Args:
            key: the file.
            start: first byte.
            length: number of bytes.

        Raises:
            NotThere: if there is no such file.
            Missing: if the piece was not handed in yet.
        """
        if key not in self._sizes:
            raise NotThere(f"{key} is not there")
        size = self._sizes[key]
        end = min(start + length, size)
        for given in self._pieces.get(key, ()):
            if given.start <= start and end <= given.start + len(given.content):
                return Piece(given.content[start - given.start : end - given.start], size)
        raise Missing([(key, start, end - start)])

    def hand_in(self, key: str, start: int, content: bytes) -> None:
        """Keep a piece of a file.

        Args:
            key: the file.
            start: its first byte.
            content: the piece.

        Raises:
            BadInput: if the piece is not of a known file, or there is no room for it.
        """
        if not 0 <= start <= start + len(content) <= self._sizes.get(key, -1):
            raise BadInput(f"{key} has no bytes {start:,} to {start + len(content):,}", code="bad-value")
        self._left -= len(content)
        if self._left < 0:
            raise BadInput(
                f"{self._source}: needs more than {MOST_GIVEN:,} bytes of it; use the command line", code="too-large"
            )
        self._pieces.setdefault(key, []).append(_Given(start, content))


class _Given(NamedTuple):
    """Bytes of a file."""

    start: int
    content: bytes
