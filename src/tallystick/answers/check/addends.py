"""Values of the statements so far, and which of them a later sum adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.answers.check.claims import Claim
from tallystick.answers.check.terms import Term
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Value, exactly

MOST_SUMMED = 200  # lines above a total that stands alone


class Addends:
    """The claims so far; the statement at hand may add up those that nothing goes on from yet."""

    def __init__(self) -> None:
        self.claims: list[Claim | None] = []  # None of a statement that has no value
        self.place = 0  # of the statement at hand

    def at(self, place: int) -> Claim:
        """What a statement that has a value comes to."""
        claim = self.claims[place]
        assert claim is not None  # noqa: S101
        return claim

    def use(self, *places: int) -> None:
        """The statement at hand goes on from earlier ones."""
        for place in places:
            if (claim := self.claims[place]) is not None:
                claim.users.append(self.place)

    def free(self) -> Iterator[int]:
        """The statements above that nothing goes on from, the last first."""
        for place in range(self.place - 1, max(-1, self.place - 1 - MOST_SUMMED), -1):
            claim = self.claims[place]
            if claim is not None and claim.adds and not claim.users:
                yield place

    def summed(self, value: Value) -> list[int]:
        """The last of them that add up to a value, two at least."""
        found: list[int] = []
        sums, true = exactly(0), Fraction(0)
        for place in self.free():
            claim = self.at(place)
            sums, true = _plus(sums, claim.written), true + claim.true
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
        """The sum of some statements, as they are written."""
        sums = exactly(0)
        for place in places:
            sums = _plus(sums, self.at(place).written)
        return sums

    def terms(self, places: Sequence[int]) -> list[Term]:
        """What some statements add."""
        return [term for place in places if (term := self.at(place).term) is not None]


def _plus(one: Value, other: Value) -> Value:
    return Value(*(first + second for first, second in zip(one, other, strict=True)))
