"""Values of the statements so far, and which of them a later sum adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.answers.check.claims import Claim
from tallystick.answers.check.terms import Term
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Value, exactly

MOST_SUMMED = 200  # statements above a lone total


class Addends:
    """The claims so far. A later sum may add the claims that no statement uses yet."""

    def __init__(self) -> None:
        self.claims: list[Claim | None] = []  # None for a statement without a value
        self.place = 0  # index of the current statement

    def at(self, place: int) -> Claim:
        """Return the claim of a statement that has a value."""
        claim = self.claims[place]
        assert claim is not None  # noqa: S101
        return claim

    def use(self, *places: int) -> None:
        """Record that the current statement uses earlier ones."""
        for place in places:
            if (claim := self.claims[place]) is not None:
                claim.users.append(self.place)

    def free(self) -> Iterator[int]:
        """Yield the preceding statements that no statement uses, the last first."""
        for place in range(self.place - 1, max(-1, self.place - 1 - MOST_SUMMED), -1):
            claim = self.claims[place]
            if claim is not None and claim.adds and not claim.users:
                yield place

    def summed(self, value: Value) -> list[int]:
        """Return the last free statements, two or more, whose sum is the value, or []."""
        found: list[int] = []
        sums, true = exactly(0), Fraction(0)
        for place in self.free():
            claim = self.at(place)
            sums, true = plus(sums, claim.written), true + claim.true
            found.append(place)
            if len(found) > 1 and (sums.meets(value) or value.exact == true):
                break
            if min(sums.low, true) > value.high:
                found = []
                break
        else:
            found = []
        current().step(len(found))
        return found[::-1]

    def sum(self, places: Sequence[int]) -> Value:
        """Return the sum of some statements, as written."""
        sums = exactly(0)
        for place in places:
            sums = plus(sums, self.at(place).written)
        return sums

    def terms(self, places: Sequence[int]) -> list[Term]:
        """Return the terms of some statements."""
        return [term for place in places if (term := self.at(place).term) is not None]


def plus(one: Value, other: Value) -> Value:
    """Return the sum of two values and of their bounds."""
    return Value(*(first + second for first, second in zip(one, other, strict=True)))
