"""Values of the statements so far, and which of them a later sum adds up."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.claims import Claim
from tallystick.answers.check.terms import Term
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Value, exactly

MOST_SUMMED = 200  # statements above a lone total
_NONE = exactly(0)


class Addends:
    """The claims so far. A later sum may add the claims that no statement uses yet."""

    def __init__(self) -> None:
        self.claims: list[Claim | None] = []  # None for a statement without a value
        self.place = 0  # index of the current statement
        self._free: dict[int, None] = {}  # free statements before `_seen`, the first first
        self._seen = 0
        self._whole = _NONE  # sum of the free statements

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
                self._drop(place)

    def free(self) -> list[int]:
        """Return the last `MOST_SUMMED` statements that no statement uses, the last first."""
        for place in range(self._seen, self.place):
            if self._is_free(place):
                self._free[place] = None
                self._whole = self._whole.plus(self.at(place).written)
        self._seen = self.place
        while self._free and (first := next(iter(self._free))) < self.place - MOST_SUMMED:
            self._drop(first)
        return list(reversed(self._free))

    def _drop(self, place: int) -> None:
        if place in self._free:
            del self._free[place]
            self._whole = self._whole.less(self.at(place).written)

    def _is_free(self, place: int) -> bool:
        claim = self.claims[place]
        return claim is not None and claim.adds and not claim.users

    def summed(self, value: Value) -> list[int]:
        """Return the last free statements, two or more, whose sum is the value, or []."""
        found: list[int] = []
        sums, true = exactly(0), Fraction(0)
        for place in self.free():
            claim = self.at(place)
            sums, true = sums.plus(claim.written), true + claim.true
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
        if self._free.keys() == frozenset(places):
            return self._whole  # a lone total of all lines so far, without adding them again
        return Value(*map(_added, zip(*(self.at(place).written for place in places), strict=True))) if places else _NONE

    def terms(self, places: Sequence[int]) -> list[Term]:
        """Return the terms of some statements."""
        return [term for place in places if (term := self.at(place).term) is not None]


def _added(numbers: Sequence[Fraction]) -> Fraction:
    """Return the sum of some numbers; adding integers is much faster than adding fractions."""
    if all(number.denominator == 1 for number in numbers):
        return Fraction(sum(number.numerator for number in numbers))
    return sum(numbers, Fraction(0))
