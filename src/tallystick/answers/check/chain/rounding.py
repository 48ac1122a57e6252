"""Tell whether a number is another one, rounded roughly or cut."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from tallystick.answers.check.chain.binary import MEASURED
from tallystick.answers.check.chain.sides import computes
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, alone, is_sum
from tallystick.derivations.statements import Side

SCALED = (10**6, 10**9, 10**3, 10**12)  # units that numbers may omit, millions first
LITTLE = Fraction(1, 100)  # relative difference of two exact numbers that are about equal
MOST_CUT = Fraction(1, 20)  # of a number that its digits may leave out without a sign
ROUND = min(SCALED)  # a number that it does not divide is written to the last digit
HALF = Fraction(1, 2)
MOST_TWICE = 100  # of a number that is rounded twice, in units of its last digit
LEAST_UP = 1_000  # of a number in units of its last digit: as many bytes may be rounded up
LEAST_RAISED = 100  # the same of a product: 873M of 872.4M
WRITTEN = (*SCALED, 10**4, 10**8)  # units with a letter, or with 万 and 亿


def is_cut(one: Side, other: Side, first: Value, second: Value) -> bool:
    """Return whether the right side is the left one, roughly rounded or cut."""
    left, right = one.expression, other.expression
    if isinstance(left, Number) and isinstance(right, Operation) and "/" in right.symbols:
        one, other, first, second = other, one, second, first  # "495 = 989 / 2"
        left, right = right, left
    measured = other.unit in MEASURED  # "= 536 MB" of 536,870,912 bytes
    loose = measured or other.loose
    number = second.exact.numerator if first.exact.denominator == second.exact.denominator == 1 else 0
    if number % ROUND and not loose and isinstance(right, Number) and not right.rounded:
        # Two whole numbers, both written to the last digit, end here, which is much faster.
        # "1.9 B + 80 M = 2,046,644,800" cuts its addends.
        return left.__class__ is Operation and left.symbols[0] == "+" and _adds_cut(left, second.exact - first.exact)
    apart = abs(first.exact - second.exact)
    near = apart <= LITTLE * abs(first.exact)
    about = loose and computes(right, asides=True)
    if (near and (about or first.meets(_to_zeros(right) or second))) or _adds_cut(right, first.exact - second.exact):
        return True  # "7,087,872 ≈ 12 × 768²", "12 × 4096² ≈ 12 × 16.7M": only near, as the sign says
    if apart < 1 < first.exact and second.exact.denominator == 1 and first.exact.denominator > 1:
        return True  # "4.2 × 1024³ = 4,509,715,660" has its decimals cut
    if not isinstance(right, Number) or apart >= (max(right.unit, _zeros(right)) if other.loose else right.unit):
        return False
    long = measured and right.value >= LEAST_UP * right.unit  # "2,152,240,128 B = 2052.6 MiB" of 2052.54
    return long or _is_truncated(left, right, first.exact, first.exact - second.exact, other)


def _is_truncated(left: Expression, right: Number, exact: Fraction, more: Fraction, stated: Side) -> bool:
    """Return whether a number is less than a unit off because it is cut, raised, or rounded twice.

    Args:
        left: the side that it cuts.
        right: the number.
        exact: the value of the side.
        more: what the side has more than the number.
        stated: the side of the number.
    """
    measured = stated.unit in MEASURED
    little = abs(more) <= MOST_CUT * exact
    if not isinstance(left, Operation):
        # "2,818,637,824 bytes ≈ 2.62 GB", "1,557,611,200 ≈ 1.5B"
        return more > 0 and ((measured and abs(more) <= LITTLE * abs(exact)) or (stated.loose and little))
    # "50257 × 12288 = 617M" is truncated, not rounded.
    truncated = more > 0 and (measured or stated.loose or little)
    raised = more < 0 and right.rounded and right.value >= LEAST_RAISED * right.unit
    return "/" in left.symbols or truncated or raised or _rounds_twice(right, exact)


def _rounds_twice(number: Number, exact: Fraction) -> bool:
    """Return whether a number of few digits rounds the rounded one: 0.30M of 0.295M of 294,912."""
    once = floor(10 * exact / number.unit + HALF)
    few = number.rounded and number.value < MOST_TWICE * number.unit
    return few and floor(Fraction(once, 10) + HALF) * number.unit == number.value


def _to_zeros(side: Expression) -> Value | None:
    """Return a number of whole thousands or millions, with the bounds of its zeros, or None.

    "800K" may be 802,816, and "860,000" 860,160; "38.0M" is written to its last digit.
    """
    if not isinstance(side, Number) or (side.rounded and side.unit not in WRITTEN):
        return None
    if side.rounded:
        return alone(side, loose=True)
    half = _zeros(side) / 2
    return Value(side.value, side.value - half, side.value + half) if half else None


def _zeros(number: Number) -> Fraction:
    """Return the largest unit of which a number is a multiple: a thousand for "327,000"; or 0.

    A rounded number, "80.0M", ends in its own digits.
    """
    return (
        Fraction(0)
        if number.rounded
        else max(
            (Fraction(scale) for scale in SCALED if number.value and number.value % scale == 0), default=Fraction(0)
        )
    )


def continues(left: Expression, right: Expression) -> bool:
    """Return whether the right side adds up the first addends of the left one.

    Example: "1296 + 1764 + 7056 = 1296 + 1764 = 3060 + 7056 = 10116".
    """
    if not (isinstance(left, Operation) and isinstance(right, Operation) and set(left.symbols) <= {"+", "-"}):
        return False
    return 1 < len(right.parts) < len(left.parts) and left.parts[: len(right.parts)] == right.parts


def _adds_cut(side: Expression, more: Fraction) -> bool:
    """Return whether cut addends explain what a sum lacks: "1,449B + 676.45B + 131B"."""
    if not is_sum(side):
        return False
    units = [part.unit for part in side.parts if isinstance(part, Number) and part.rounded]
    return len(units) == len(side.parts) and 0 <= more < sum(units)
