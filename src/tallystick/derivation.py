"""A derivation: what a text says about numbers, statement by statement. Plain data, whatever the text was written in."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.arithmetic import Expression


class Statement(NamedTuple):
    """One chain "label: a = b ≈ c", or a labelled number with no relation at all.

    `sides` that could not be read as arithmetic are left out. `loose` says of each side whether ``≈`` or ``~`` stands
    before it.
    """

    line: int  # where it starts, the first line of the text being 1
    last: int  # where it ends
    text: str  # as written
    label: str  # the words before it
    heading: str  # the words of the heading, or of the line that ends in a colon, above it
    name: str  # the variable that it defines or restates, or ""
    sides: tuple[Expression, ...]
    loose: tuple[bool, ...]


class Unread(NamedTuple):
    """A line with arithmetic in it that is part of no statement."""

    line: int
    text: str


class Derivation(NamedTuple):
    """All statements of a text, in its order."""

    source: str
    statements: tuple[Statement, ...]
    unread: tuple[Unread, ...]
