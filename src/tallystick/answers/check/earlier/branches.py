"""Judge a number by the lines that break it down: the branches drawn or indented below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tallystick.answers.check.chain.mistyped import is_mistyped
from tallystick.answers.check.claims import Claim, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import MOST_BETWEEN
from tallystick.answers.check.earlier.lists import Lists, is_bytes
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.arithmetic import Value
from tallystick.derivations.statements import Derivation

MOST_BRANCHES = 40  # statements above that may be branches of one line

_DRAWN = re.compile(r"[\s│┃]*[└├╰┣┗]")
_BEFORE = re.compile(r"[\s>│┃└├╰┣┗─━|*•-]*")  # what precedes the words of a line: the deeper, the longer


class Branches:
    """Judges the numbers that their own branches break down."""

    def __init__(self, derivation: Derivation, so_far: Addends, lists: Lists, quantities: Quantities | None) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.lists = lists
        self.quantities = quantities
        self.depth = 0  # of the last statement

    def ended(self, place: int) -> Iterator[tuple[int, Sum]]:
        """Yield each number whose branches end before a statement, and their sum, deepest first.

        It is their sum, or that but for a digit, or less than they are.

        Args:
            place: index of a statement, or their number at the end of the text.
        """
        before, self.depth = self.depth, depth_of(self.derivation, place)
        for parent, places in self._closed(place) if self.depth < before else ():
            sums = self.so_far.sum(places)
            fits = sums.meets(self.so_far.at(parent).written)
            drawn = all(_DRAWN.match(self.derivation.lines[self.derivation.statements[one].line - 1]) for one in places)
            exact = all(map(_is_exact, map(self.so_far.at, (parent, *places))))
            wrong = self._is_mistyped(parent, sums) if exact else drawn and self._is_less(parent, places, sums)
            if (drawn and fits) or wrong:
                yield parent, Sum(places, sums, fits)

    def _is_mistyped(self, parent: int, sums: Value) -> bool:
        claim = self.so_far.at(parent)
        known = claim.expression is not None or (self.quantities is not None and self.quantities.of(claim.stated))
        return is_mistyped(claim, sums, judged=False) and not known

    def _is_less(self, parent: int, places: Sequence[int], sums: Value) -> bool:
        """Return whether a number without a formula is less than its branches, which have one."""
        computed = [self.so_far.at(place).expression is not None for place in (parent, *places)]
        below = self.derivation.statements[places[0]].line == self.derivation.statements[parent].last + 1
        less = below and self.so_far.at(parent).written.high < sums.low
        counts = not is_bytes(self.derivation.statements[parent])
        return not computed[0] and all(computed[1:]) and less and not self.lists.are_apart((parent, *places), counts)

    def _closed(self, place: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each statement whose branches end before `place`, and the branches.

        Each of them states one number, alone on its line.
        """
        statements, claims = self.derivation.statements, self.so_far.claims
        last = place - 1
        if last < 1 or (place < len(statements) and statements[place].line == statements[last].line):
            return
        own = depth_of(self.derivation, last)
        while own > self.depth and (found := _above(self.derivation, last, own)) is not None:
            parent, places = found
            added = all((claim := claims[one]) is not None and claim.right and claim.adds for one in places)
            if len(places) > 1 and added and self._is_above(parent):
                yield parent, tuple(places)
            last, own = parent, depth_of(self.derivation, parent)

    def _is_above(self, parent: int) -> bool:
        """Return whether a statement may state the sum of its branches, even as their title."""
        claim = self.so_far.claims[parent]
        return claim is not None and claim.right and (claim.adds or self.derivation.statements[parent].titles)


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


def _is_exact(claim: Claim) -> bool:
    return is_whole(claim.side) and not claim.rounded
