"""Points at which a formula is tried that nobody asked for: other values of each argument, and those likely to break it.

A rounding that divides every value asked for leaves no trace in them: 8/3 of 768, 1536 and 2304 is whole. It shows
between them and beyond them, and most of all where a rounding of the formula's own is about to step.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, zip_longest

from tallystick.core.dims import Expression, evaluate, keys

Point = dict[str, int]

MOST_CANDIDATES = 2_000  # values of an argument looked at for the ones near a step
MOST_ROUNDINGS = 8
NEAREST = 2  # points on each side of a step


def between(values: Sequence[int]) -> list[int]:
    """Some values inside of the span that are not among them, from its widest gaps; some next to what was asked for."""
    gaps = sorted(pairwise(values), key=lambda gap: gap[0] - gap[1])[:3]
    middles = [low + (high - low) * part // 8 for part in (4, 2, 5) for low, high in gaps]
    near = [low + 1 for low, _ in gaps]
    return _in_turn(middles, near, leaving=values)


def beyond(values: Sequence[int]) -> list[int]:
    """Some values outside of the span: steps of its own, and others that share no divisor with them."""
    low, high, step = values[0], values[-1], lattice(values)
    steps = [4 * high + step, high + step, 2 * high, 3 * high, low // 2]
    return _in_turn(steps, [4 * high + 1, 2 * high + 1, high + 1], leaving=[0, *values])


def _in_turn(some: Sequence[int], others: Sequence[int], leaving: Sequence[int]) -> list[int]:
    """One of these, one of those, and so on, each value once and none of `leaving`."""
    mixed = [value for pair in zip_longest(some, others) for value in pair if value is not None]
    return [value for value in dict.fromkeys(mixed) if value not in leaving]


def lattice(values: Iterable[int]) -> int:
    """The largest number that all differences between the values are multiples of; 1 for a single value."""
    first, *others = values
    return math.gcd(*(value - first for value in others)) or 1


def with_value(points: Sequence[Point], argument: str, value: int) -> Iterator[Point]:
    """Points that were built, each with another value of one argument."""
    for point in points:
        yield {**point, argument: value}


def off(values: Sequence[int], step: int) -> list[int]:
    """Some values that a range with a step leaves out, within it and beyond."""
    middle = values[len(values) // 2]
    others = [start + part for start in (values[0], middle, values[-1]) for part in (1, step // 2)]
    return [value for value in dict.fromkeys(others) if (value - values[0]) % step]


def near_steps(
    forms: Iterable[Expression], points: Sequence[Point], spans: Mapping[str, Sequence[range]]
) -> Iterator[Point]:
    """Points where a rounding of some form is about to step, has just stepped, or divides without a rest.

    Args:
        forms: the expressions to be broken.
        points: models that were built, of which one argument at a time is changed.
        spans: for each argument the values to look among, one range after another.
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
    """Of the candidates those nearest to a step, from above, from below and upon it."""
    above: list[tuple[Fraction, int]] = []
    below: list[tuple[Fraction, int]] = []
    upon: list[tuple[Fraction, int]] = []
    for value in candidates:
        rest = _rest(rounding, {**base, argument: value})
        if rest is None:
            continue
        part = rest % 1 if rounding[0] in ("floor", "ceil") else abs(rest)  # type: ignore[index]
        if not part:
            upon.append((part, -value))
        else:
            above.append((part, -value))
            below.append((-part, -value))
    for some in (above, below, upon):
        for _, value in sorted(some)[:NEAREST]:
            yield {**base, argument: -value}


def _rest(rounding: Expression, point: Point) -> Fraction | None:
    """A quotient before it is rounded, or the difference of the two of which one is taken."""
    if not isinstance(rounding, tuple):
        return None
    symbol, left, right = rounding
    try:
        one, other = Fraction(evaluate(left, point)), Fraction(evaluate(right, point))
        return one / other if symbol in ("floor", "ceil") else one - other
    except ZeroDivisionError:
        return None


def _roundings(form: Expression) -> Iterator[Expression]:
    """All roundings in a form, those inside of others too."""
    if isinstance(form, tuple):
        if form[0] in ("floor", "ceil", "max", "min"):
            yield form
        yield from _roundings(form[1])
        yield from _roundings(form[2])
