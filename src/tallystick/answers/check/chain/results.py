"""Read the results in parentheses in a sum: "50257·768 (38,597,376) + …"."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.claims import is_whole
from tallystick.derivations.arithmetic import Expression, Number, Operation, is_sum
from tallystick.derivations.slips import is_one_slip, misrounds

LEAST_RESULT = 1_000  # a smaller number behind a product may be one of its sizes


class Result(NamedTuple):
    """A product in a sum, with its place there and the number behind it."""

    place: int
    product: Expression
    number: Number


def results_in(side: Expression) -> list[Result]:
    """Return the results in a sum, or [] if the side is none."""
    found = []
    for place, addend in enumerate(side.parts if is_sum(side) else ()):
        if not (isinstance(addend, Operation) and addend.symbols[-1] == "(" and len(addend.parts) > 2):
            continue
        product = Operation(addend.symbols[:-1], addend.parts[:-1])
        if isinstance(number := addend.parts[-1], Number):
            found.append(Result(place, product, number))
    return found


def is_slip_of(number: Number, meant: Fraction) -> bool:
    """Return whether a number is the result of a product but for a digit, as it is rounded."""
    exact = meant.denominator == 1 and number.value >= LEAST_RESULT and is_whole(number)
    return misrounds(number, meant) or (exact and is_one_slip(str(number.value), str(meant)))


def with_results(side: Expression, results: Collection[Result]) -> Expression:
    """Return a sum with some results in place of their products."""
    if not isinstance(side, Operation):
        return side
    numbers = {result.place: result.number for result in results}
    return side._replace(parts=tuple(numbers.get(place, part) for place, part in enumerate(side.parts)))
