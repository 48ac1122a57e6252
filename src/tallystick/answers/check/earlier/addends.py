"""Values of the statements so far, and which of them a later sum adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.claims import COLUMN, Claim
from tallystick.answers.check.terms import Term
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Value, exactly

MOST_SUMMED = 200  # statements above a lone total
_NONE = exactly(0)


class Sum(NamedTuple):
    """The statements that a number adds, their sum as written, and whether it is that sum."""

    places: tuple[int, ...]
    sums: Value
    fits: bool
    times: tuple[int, ...] = ()  # how often it adds each; () if once


class Addends:
    """The claims so far. A later sum may add the claims that no statement uses yet."""

    def __init__(self) -> None:
        self.claims: list[Claim | None] = []  # None for a statement without a value
        self.place = 0  # index of the current statement
        self.kind = ""  # what the current statement counts: it adds statements of its kind
        self._free: dict[str, _Free] = {}  # before `_seen`, by kind
        self._sizes: dict[Fraction, int] = {}  # the last statement that defines each size
        self._seen = 0

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
                if claim.kind in self._free:
                    self._free[claim.kind].drop(place, claim)

    def used_by(self, place: int) -> list[int]:
        """Return the last statements that a statement uses."""
        first = max(0, place - MOST_SUMMED)
        return [one for one in range(first, place) if (claim := self.claims[one]) is not None and place in claim.users]

    def free(self, kind: str | None = None) -> list[int]:
        """Return the last `MOST_SUMMED` statements that no statement uses, the last first.

        Args:
            kind: what they count; None for what the current statement counts.
        """
        for place in range(self._seen, self.place):
            claim = self.claims[place]
            if claim is not None and claim.adds and not claim.users:
                self._free.setdefault(claim.kind, _Free()).put(place, claim)
            elif claim is not None and (claim.defines or not claim.adds):
                self._sizes[claim.stated] = place
        self._seen = self.place
        if (free := self._free.get(self.kind if kind is None else kind)) is None:
            return []
        while free.places and (first := next(iter(free.places))) < self.place - MOST_SUMMED:
            free.drop(first, self.at(first))
        return list(reversed(free.places))

    def summed(self, value: Value) -> list[int]:
        """Return the last free statements, two or more, whose sum is the value, or [].

        "Per layer: 404M FLOPs" may add lines that do not name FLOPs.
        """
        other = self.kind and not self.kind.startswith(COLUMN)
        return self._summed(value, self.free()) or (self._summed(value, self.free("")) if other else [])

    def _summed(self, value: Value, free: Sequence[int]) -> list[int]:
        found: list[int] = []
        last = 0  # how many of the found ones add up to the value
        sums, true = exactly(0), Fraction(0)
        for place in free:
            claim = self.at(place)
            sums, true = sums.plus(claim.written), true + claim.true
            found.append(place)
            if len(found) > 1 and value.low <= true <= value.high:
                last = len(found)
                break
            if min(sums.low, true) > value.high:
                break
            if len(found) > 1 and not last and sums.meets(value):
                last = len(found)
                if sums.high - sums.low <= value.high - value.low:
                    break  # else one more may fit better: "7.24B" with "~7B" of 6.98B
        current().step(len(found))
        return found[:last][::-1]

    def summed_with_size(self, number: Fraction) -> list[int]:
        """Return the last free statements that add up to a number with a size among them, or [].

        Examples: 589,824 and "bias = 768", which defines a variable, below them 590,592;
        "attention (4 × 256² = 262,144), norm (2 × 256 = 512), in all 262,656".
        """
        found, less = list[int](), number
        for place in self.free():
            found.insert(0, place)
            less -= self.at(place).stated
            if less <= 0:
                break
            if (size := self._sizes.get(less, -1)) > place:
                return sorted((*found, size))
        return []

    def last(self) -> Iterator[tuple[list[int], Value]]:
        """Yield the last free statements, one more each time, the last first, and their sum."""
        sums, found = _NONE, list[int]()
        for place in self.free():
            sums = sums.plus(self.at(place).written)
            found.append(place)
            yield found, sums

    def sum(self, places: Sequence[int]) -> Value:
        """Return the sum of some statements, as written."""
        if (free := self._free.get(self.kind)) is not None and free.places.keys() == frozenset(places):
            return free.sum  # a lone total of all lines so far, without adding them again
        return Value(*map(_added, zip(*(self.at(place).written for place in places), strict=True))) if places else _NONE

    def terms(self, places: Sequence[int]) -> list[Term]:
        """Return the terms of some statements."""
        return [term for place in places if (term := self.at(place).term) is not None]


class _Free:
    """Statements of one kind that no statement uses, the first first, and their sum."""

    def __init__(self) -> None:
        self.places: dict[int, None] = {}
        self.sum = _NONE

    def put(self, place: int, claim: Claim) -> None:
        self.places[place] = None
        self.sum = self.sum.plus(claim.written)

    def drop(self, place: int, claim: Claim) -> None:
        if place in self.places:
            del self.places[place]
            self.sum = self.sum.less(claim.written)


def _added(numbers: Sequence[Fraction]) -> Fraction:
    """Return the sum of some numbers; adding integers is much faster than adding fractions."""
    if all(number.denominator == 1 for number in numbers):
        return Fraction(sum(number.numerator for number in numbers))
    return sum(numbers, Fraction(0))
