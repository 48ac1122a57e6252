"""Tell a mistyped number: another one but for a slip of typing, as it is rounded."""

from __future__ import annotations

from fractions import Fraction

from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.claims import Claim, is_whole
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, exactly, is_sum, trailing_zeros
from tallystick.derivations.slips import LEAST_TYPED, in_units, is_one_slip, misrounds

MOST_SPREAD = 10  # of a sum of whole numbers behind ≈
LEAST_SHORT = 3  # the same of a number that counts parameters, next to a product
LEAST_LESS = 4  # the same of a rounded total that is less than its addends
LEAST_TAIL = 5  # digits at the end of two numbers that are equal by chance once in 100,000
LEAST_UNSURE = 5  # digits of an exact number next to a product that holds words
LEAST_EXACT = 6  # the same of an exact number, whatever it is called
LEAST_TOTAL = 5  # the same of an exact total
LEAST_SWAPPED = Fraction(1, 100)  # like LEAST_OFF: two digits are swapped by chance less often
POWERS = tuple(Fraction(10**power) for power in (1, 2, 3, 6, 9, 12))  # a zero or a letter too many
LEAST_OFF = Fraction(1, 20)  # a rounded total may leave out less than 1/20, and be a digit off by chance


def mistyped_aside(side: Expression) -> tuple[Number, Number] | None:
    """Return a number and the rounded one in parentheses behind it if that has a digit wrong.

    Example: "135,266,304 (≈ 115.3M)". A digit off by the rounding is not wrong.
    """
    if not (isinstance(side, Operation) and side.symbols == ("(",)):
        return None
    number, aside = side.parts
    if not (isinstance(number, Number) and isinstance(aside, Number)):
        return None
    return (number, aside) if misrounds(aside, number.value) else None


def is_mistyped(claim: Claim, sums: Value, *, judged: bool, least: Fraction = LEAST_OFF) -> bool:
    """Return whether a number is a sum with one digit changed, or two neighbouring ones swapped.

    Args:
        claim: the number.
        sums: the sum.
        judged: whether the number is a total; only a total may be rounded.
        least: relative difference that a rounded total and the sum must have, unless two digits
            are swapped.
    """
    number = claim.side
    if not isinstance(number, Number) or sums.exact <= 0 or sums.meets(claim.written):
        return False
    number = to_zeros(number, loose=claim.rounded)
    exact = is_whole(number) and number.unit == 1 and (sums.low == sums.high or sums.high - sums.low <= MOST_SPREAD)
    written, meant = str(in_units(claim.stated, number.unit)), str(in_units(sums.exact, number.unit))
    if len(written) != len(meant):
        return False
    swapped = sorted(written) == sorted(meant)
    enough = exact or (judged and abs(sums.exact - claim.stated) > (LEAST_SWAPPED if swapped else least) * sums.exact)
    enough = enough or (judged and len(written) >= LEAST_LESS and claim.stated + number.unit < sums.low)
    digits = (LEAST_TOTAL if judged else LEAST_EXACT) if exact else LEAST_TYPED
    return enough and len(written) >= digits and is_one_slip(written, meant)


def digits_of(claim: Claim) -> int:
    """Return how many digits a number is written with, without the zeros that only round it."""
    number = claim.side
    if not isinstance(number, Number):
        return 0
    return len(str(in_units(claim.stated, to_zeros(number, loose=claim.rounded).unit)))


def to_zeros(number: Number, *, loose: bool) -> Number:
    """Return a number, rounded to its last digit before zeros if it is `loose`: "~9,500"."""
    zeros = trailing_zeros(number.value) if loose and number.unit == 1 else 0
    return number._replace(unit=number.unit * 10**zeros) if zeros else number


def ends_alike(stated: Fraction, meant: Fraction) -> bool:
    """Return whether two whole numbers have their last digits in common, as two sums of one column.

    Example: 6,738,109,248 for 5,933,109,248, whose millions are added wrongly.
    """
    written, right = str(stated), str(meant)
    tail = written[-LEAST_TAIL:]
    return written != right and len(tail) == LEAST_TAIL and right.endswith(tail) and "000" not in tail


def has_slip(stated: Value, meant: Value, *, least: int) -> bool:
    """Return whether an exact number of `least` digits is another one, but for a slip of typing."""
    numbers = (stated, meant)
    if any(value.exact.denominator != 1 or value.low != value.high for value in numbers):
        return False
    written, right = (str(value.exact) for value in numbers)
    return len(written) >= least and is_one_slip(written, right)


def misadds(side: Expression, stated: Value, sums: Value) -> bool:
    """Return whether a number is a sum but for one digit: of its own, or of one addend.

    The number and the addend have `LEAST_UNSURE` digits, all written.
    """
    if not is_sum(side) or sums.low != sums.high or stated.low != stated.high:
        return False
    off, whole = stated.exact - sums.exact, [part for part in side.parts if is_whole(part)]
    pairs = [
        (sums.exact, stated.exact),
        *((part.value, part.value + off) for part in whole if isinstance(part, Number)),
    ]
    return any(has_slip(exactly(one), exactly(other), least=LEAST_UNSURE) for one, other in pairs)


def by_power(low: Fraction, high: Fraction) -> bool:
    """Return whether two numbers are the same but for a zero or a letter too many."""
    return any(abs(high - power * low) <= 2 * LITTLE * high for power in POWERS)
