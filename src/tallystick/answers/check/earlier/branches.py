"""Find the lines that break a number down: the branches drawn or indented below its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tallystick.answers.check.claims import Claim, is_whole
from tallystick.answers.check.earlier.allowances import MOST_BETWEEN
from tallystick.derivations.statements import Derivation

MOST_BRANCHES = 40  # statements above that may be branches of one line

_DRAWN = re.compile(r"[\s│┃]*[└├╰┣┗]")
_BEFORE = re.compile(r"[\s>│┃└├╰┣┗─━|*•-]*")  # what precedes the words of a line: the deeper, the longer


class Branches(NamedTuple):
    """A statement, the statements one level below it, and whether a tree is drawn."""

    parent: int
    places: tuple[int, ...]
    drawn: bool


def closed(derivation: Derivation, claims: Sequence[Claim | None], place: int, depth: int) -> Iterator[Branches]:
    """Yield each statement whose branches end before `place`, the deepest first.

    Each branch and the statement above them must state one exact number, alone on its line.

    Args:
        derivation: the statements of the text.
        claims: the values of the statements before `place`.
        place: index of a statement, or their number at the end of the text.
        depth: the depth of that statement.
    """
    statements = derivation.statements
    last = place - 1
    if last < 1 or (place < len(statements) and statements[place].line == statements[last].line):
        return
    own = depth_of(derivation, last)
    while own > depth and (found := _above(derivation, last, own)) is not None:
        parent, places = found
        if len(places) > 1 and all(_is_one_number(claims[one]) for one in (parent, *places)):
            drawn = all(_DRAWN.match(derivation.lines[statements[one].line - 1]) for one in places)
            yield Branches(parent, tuple(places), drawn)
        last, own = parent, depth_of(derivation, parent)


def _above(derivation: Derivation, last: int, own: int) -> tuple[int, list[int]] | None:
    """Return the statement above some branches, and the branches, or None."""
    statements = derivation.statements
    places: list[int] = []
    after = statements[last].line
    for place in range(last, max(-1, last - MOST_BRANCHES), -1):
        line = statements[place]
        apart = after - line.last > MOST_BETWEEN or (places and place != last and line.line == after)
        if apart or line.heading != statements[last].heading:
            return None
        after, depth = line.line, depth_of(derivation, place)
        if depth < own:
            return place, places[::-1]
        if depth == own:
            places.append(place)
    return None


def depth_of(derivation: Derivation, place: int) -> int:
    """Return the column in which a statement's words begin, or 0 at the end of the text."""
    if place == len(derivation.statements):
        return 0
    before = _BEFORE.match(derivation.lines[derivation.statements[place].line - 1])
    return len(before[0]) if before is not None else 0


def _is_one_number(claim: Claim | None) -> bool:
    return claim is not None and claim.adds and claim.right and is_whole(claim.side) and not claim.rounded
