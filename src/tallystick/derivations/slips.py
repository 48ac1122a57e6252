"""Tell a slip of typing: one digit changed, or two neighbouring ones swapped.

>>> is_one_slip("7087782", "7087872"), is_one_slip("7087782", "7078872")
(True, False)
"""

from __future__ import annotations

from fractions import Fraction

from tallystick.derivations.arithmetic import Number, trailing_zeros

MOST_OFF = 100  # a digit that changes a number by less than 1/100 is off by rounding
LEAST_UNITS = 5  # the same of a smaller change, in units of the last digit
LEAST_TYPED = 3  # digits of a rounded number that is another one with a digit mistyped


def is_one_slip(written: str, meant: str) -> bool:
    """Return whether two numbers differ in one digit, or in the order of two neighbouring ones."""
    if len(written) != len(meant) or written == meant:
        return False
    first = 0
    while written[first] == meant[first]:  # much faster than comparing all digits
        first += 1
    changed = written[first + 1 :] == meant[first + 1 :]
    pair, behind = slice(first, first + 2), slice(first + 2, None)
    return changed or (written[pair] == meant[pair][::-1] and written[behind] == meant[behind])


def is_typed_for(number: Number, meant: Fraction, *, least: int = LEAST_TYPED) -> bool:
    """Return whether a number of `least` digits, as rounded, is another but for a slip."""
    written, right = (str(in_units(value, number.unit)) for value in (number.value, meant))
    return len(written) >= least and is_one_slip(written, right)


def misrounds(number: Number, meant: Fraction) -> bool:
    """Return whether a rounded number is another one but for a digit: 115.3M of 135,266,304."""
    off = abs(number.value - meant)
    last = number.unit * 10 ** trailing_zeros(in_units(number.value, number.unit))  # of 6700万, its hundreds
    away = off * MOST_OFF > meant or off >= LEAST_UNITS * last
    return number.rounded and away and is_typed_for(number, meant)


def in_units(value: Fraction, unit: Fraction) -> int:
    """Return a value in units of a number's last digit, rounded."""
    return value.numerator if unit == value.denominator == 1 else round(value / unit)
