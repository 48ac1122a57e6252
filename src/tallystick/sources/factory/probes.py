"""Choose extra points that test a formula beyond the requested values.

A rounding that divides every requested value leaves no trace: 8/3 of 768, 1536 and 2304 is whole.
It shows between and beyond these values, and most of all next to a step of the formula's own
roundings.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, zip_longest

from tallystick.core.algebra.expressions import Expression, evaluate, keys

Point = dict[str, int]

MOST_CANDIDATES = 2_000  # values of an argument searched for those near a step
MOST_ROUNDINGS = 8
NEAREST = 2  # points on each side of a step


def between(values: Sequence[int]) -> list[int]:
    """Return unrequested values from the widest gaps, and values next to requested ones."""
    gaps = sorted(pairwise(values), key=lambda gap: gap[0] - gap[1])[:3]
    middles = [low + (high - low) * part // 8 for part in (4, 2, 5) for low, high in gaps]
    near = [low + 1 for low, _ in gaps]
    return _in_turn(middles, near, leaving=values)


def beyond(values: Sequence[int]) -> list[int]:
    """Return values outside of the span: some on its steps, some that share no divisor with it."""
    low, high, step = values[0], values[-1], lattice(values)
    steps = [4 * high + step, high + step, 2 * high, 3 * high, low // 2]
    return _in_turn(steps, [4 * high + 1, 2 * high + 1, high + 1], leaving=[0, *values])


def _in_turn(some: Sequence[int], others: Sequence[int], leaving: Sequence[int]) -> list[int]:
    """Interleave two lists, each value once, without the values in `leaving`."""
    mixed = [value for pair in zip_longest(some, others) for value in pair if value is not None]
    return [value for value in dict.fromkeys(mixed) if value not in leaving]


def lattice(values: Iterable[int]) -> int:
    """Return the greatest common divisor of the differences between the values.

    1 for a single value.
    """
    first, *others = values
    return math.gcd(*(value - first for value in others)) or 1


def with_value(points: Sequence[Point], argument: str, value: int) -> Iterator[Point]:
    """Yield each point with another value of one argument."""
    for point in points:
        yield {**point, argument: value}


def off(values: Sequence[int], step: int) -> list[int]:
    """Return some values that a stepped range skips, within it and beyond."""
    middle = values[len(values) // 2]
    others = [start + part for start in (values[0], middle, values[-1]) for part in (1, step // 2)]
    return [value for value in dict.fromkeys(others) if (value - values[0]) % step]


def near_steps(
    forms: Iterable[Expression], points: Sequence[Point], spans: Mapping[str, Sequence[range]]
) -> Iterator[Point]:
    """Yield points where a rounding in some form is about to step, has just stepped, or is exact.

    Args:
        forms: the expressions to test.
        points: points that were built; one argument at a time is changed.
        spans: for each argument, the ranges of values to search.
    """
    roundings = list(dict.fromkeys(rounding for form in forms for rounding in _roundings(form)))
    dice = random.Random(1)  # noqa: S311  # points are to be spread, not secret
    for base in points:
        for rounding in roundings[:MOST_ROUNDINGS]:
            for argument in dict.fromkeys(keys(rounding)):
                for span in spans.get(argument, ()):
                    many = len(span) > MOST_CANDIDATES
                    yield from _nearest(rounding, base, argument, dice.sample(span, MOST_CANDIDATES) if many else span)


def _nearest(rounding: Expression, base: Point, argument: str, candidates: Sequence[int]) -> Iterator[Point]:
    """Yield the candidates nearest to a step: just above, just below and exactly on it."""
    above: list[tuple[int | Fraction, int]] = []
    below: list[tuple[int | Fraction, int]] = []
    upon: list[tuple[int | Fraction, int]] = []
    for value in candidates:
        rest = _rest(rounding, {**base, argument: value})
        if rest is None:
            continue
        part = rest if rest > 0 else -rest  # below 0 is only the difference of two sides
        if not part:
            upon.append((part, -value))
        else:
            above.append((part, -value))
            below.append((-part, -value))
    for some in (above, below, upon):
        for _, value in heapq.nsmallest(NEAREST, some):
            yield {**base, argument: -value}


def _rest(rounding: Expression, point: Point) -> int | Fraction | None:
    """Return what rounding leaves of a quotient, or the difference of the sides of a max or min."""
    if not isinstance(rounding, tuple):
        return None
    symbol, left, right = rounding
    try:
        one, other = evaluate(left, point), evaluate(right, point)
        return Fraction(one % other, other) if symbol in ("floor", "ceil") else one - other
    except ZeroDivisionError:
        return None


def _roundings(form: Expression) -> Iterator[Expression]:
    """Yield all roundings in a form, nested ones too."""
    if isinstance(form, tuple):
        if form[0] in ("floor", "ceil", "max", "min"):
            yield form
        yield from _roundings(form[1])
        yield from _roundings(form[2])
