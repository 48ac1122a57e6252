"""Tell two sides that are not meant to be equal: a time, an equation to solve, two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import floor

from tallystick.answers.check.chain.sides import names_in
from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Undefined, Value, evaluate, exactly
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import Side

BINARY_LETTER = "is right if it counts 1,024 as 1,000"
DECIMAL_LETTER = "is right if it counts 1,000 as 1,024"
TWO_NUMBERS = "sets one number equal to another, and computes nothing"

_LEAST_COMPARED = 1000  # two smaller numbers are sizes, shares or settings
_LEAST_TYPED = 100  # two smaller numbers with one digit apart are not mistyped
_LIKE = Fraction(1, 50)  # a ratio this near to a conversion is one
_NEAR_POWER = Fraction(1, 1000)  # a ratio this near to 1.024 is of the two meanings of kilo
_LEAST_CONVERTED = Fraction(3, 2)  # nearer sides are in one unit
_PER_BYTE = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8))
MOST_PREFIXES = 4  # kilo, mega, giga, tera
_PREFIXES = (Fraction(1000), Fraction(1024))
_LETTERED = tuple(_PREFIXES[0] ** power for power in range(1, MOST_PREFIXES))  # the last digits of whole letters
_SCALES = (
    Fraction(1),
    *((mine / its) ** power for mine, its in product(_PREFIXES, _PREFIXES) for power in range(MOST_PREFIXES)),
    *(prefix**power for prefix in _PREFIXES for power in range(1, MOST_PREFIXES + 1)),
)
_MOST_DECIMALS = 3
# The power of 1,024 that a unit names: 3 for a last digit of "14 GiB", and of "14.0 GiB"
_NAMED = {
    _PREFIXES[1] ** power / 10**decimals: power
    for power in range(1, MOST_PREFIXES + 1)
    for decimals in range(_MOST_DECIMALS + 1)
}
_WIDTHS = (2, 4, 8)  # bytes of a number
_CONVERSIONS = frozenset(scale * width for scale, width in product(_SCALES, _PER_BYTE))
_MOST_DIGITS = 4  # of a number with its superscript lost, "224" for 2²⁴
_MOST_EXPONENT = 64
_MOST_PARTS = 8  # of a side in which one number may have lost its superscript
BILLION = 10**9
_NEAR_FRACTION = 8  # a result within an eighth of a computed fraction is meant as it
_ROUND = 2  # digits before the zeros of a round number
_FAR = 12  # two numbers with a larger ratio are no slip, but for a unit
TEN = Number(Fraction(10))

MEASURED = ("bytes", "operations", "multiplications")  # units of numbers that count no parameters


def unlike(left: Side, right: Side, values: tuple[Fraction, Fraction]) -> str:
    """Return why two unequal sides may both be right, or "" if they must be equal.

    Args:
        left: one side.
        right: its neighbour.
        values: the values of both.
    """
    one, other = left.expression, right.expression
    why = _small(one, other, *values) or _converted(left, right, *values) or _binary(one, right, *values)
    if why:
        return why
    if _fused(left, right, *values):
        why = "is right if a multiplication with its addition is one operation, or two"
    elif _lost_powers(one, values[1]):
        why = "is right if a superscript was lost"
    elif _divides_whole(one, values[1]):
        why = "is right if its quotients are whole numbers"
    elif _restates(other, *values):
        why = "restates its factors as round numbers"
    elif right.unit in MEASURED and left.unit != right.unit and isinstance(one, Name | Number):
        why = "gives parameters in another unit"  # "one expert (of one layer) = 352 MB"
    elif right.unit == "seconds":
        why = "gives a time: its unit is not followed"
    elif isinstance(other, Name) or (isinstance(other, Number) and not other.value):
        why = "relates variables, and states no number"  # "24·T·D = 12·T²", "a·x + b = 0"
    elif isinstance(one, Number) and isinstance(other, Number):
        why = _apart(left, right, one, other)
    elif _is_range(right, one, other):
        why = "states a range"
    elif isinstance(other, Operation) and other.symbols == ("^",) and other.parts[0] == TEN:
        why = "rounds to a power of ten"
    elif _shapes(one, other):
        why = "multiplies matrices: these are their shapes"
    return why


def _small(left: Expression, right: Expression, one: Fraction, other: Fraction) -> str:
    """Return why values are no counts: one is not positive, or both are fractions of 1.

    Numbers with a result near to what they make, "0.90625^8 = 0.444", are computed all the same.
    """
    share = isinstance(right, Number) and right.rounded  # "= 12.5%"
    computed = isinstance(left, Operation) and not any(True for _ in names_in(left))
    near = abs(one - other) * _NEAR_FRACTION <= abs(one)
    if min(one, other) <= 0 or (max(one, other) < 1 and not share and not (computed and near)):
        return "relates fractions, or numbers that are not positive, and counts nothing"
    return ""


def _binary(left: Expression, right: Side, one: Fraction, other: Fraction) -> str:
    """Return why a rounded number of bytes or operations may be right: 1,024 counts as 1,000."""
    number = right.expression
    if one != other and (_counts_binary(number, one) or _counts_binary(left, other)):
        return BINARY_LETTER
    if not isinstance(number, Number) or right.unit not in MEASURED:
        return ""
    ratio = max(one, other) / min(one, other)
    if right.unit == "bytes" and isinstance(left, Operation) and abs(ratio / BILLION - 1) <= _LIKE:
        return "is right if B stands for bytes"  # "7B × 0.5B = 3.5 GB"
    if isinstance(left, Number) and left.rounded and left.unit >= _PREFIXES[0]:
        number = left  # "24 KB = 24,576 bytes"
    if not number.rounded:
        return ""
    near = min(number.unit / number.value / 2, _NEAR_POWER)
    powers = (Fraction(1024, 1000) ** power for power in range(1, binary_powers(number) + 1))
    named = _NAMED.get(number.unit, 0)  # "7 × 10^9 × 2 = 14 GiB"
    if named and abs(ratio / Fraction(1024, 1000) ** named - 1) <= near:
        return DECIMAL_LETTER
    return BINARY_LETTER if any(abs(ratio / power - 1) <= near for power in powers) else ""


def binary_powers(number: Number) -> int:
    """Return how often a number's letter may count 1,024 as 1,000: twice for MB.

    61 KB may mean KiB, but no GiB; "61 KiB" says so.
    """
    if str(number.unit.numerator).strip("0") != "1":
        return 0
    return sum(number.unit >= 1000**less or number.value >= 1000 ** (less + 1) for less in range(MOST_PREFIXES - 1))


def _counts_binary(side: Expression, meant: Fraction) -> bool:
    """Return whether a number is exactly another if its letter counts 1,024: "128K = 131,072".

    It may be a sum of such numbers: "250M + 7.25B".
    """
    numbers = side.parts if isinstance(side, Operation) and set(side.symbols) == {"+"} else (side,)
    lettered = [number for number in numbers if isinstance(number, Number) and number.rounded]
    if len(lettered) < len(numbers):
        return False
    binary = [_in_binary(number, number.value) for number in lettered]
    last = lettered[-1]
    whole = last.unit in _LETTERED and last.value >= _PREFIXES[0] * last.unit  # "2560M" has the letter M, not G
    return sum(binary) == meant or (whole and len(lettered) == 1 and _in_binary(last, last.unit) == meant)


def _in_binary(number: Number, size: Fraction) -> Fraction:
    """Return a number with a letter in powers of 1,024: 2^20 for 1M.

    The letter is the largest one below `size`.
    """
    power = max((one for one in range(MOST_PREFIXES + 1) if size >= 1000**one), default=0)
    return number.value * Fraction(1024, 1000) ** power


def _fused(left: Side, right: Side, one: Fraction, other: Fraction) -> bool:
    """Return whether the sides count operations, and one twice as many: "512³ FLOPs ≈ 268M"."""
    if not {"operations", "multiplications"} & {left.unit, right.unit}:
        return False
    low, high = sorted((one, other))
    return abs(high - 2 * low) <= _LIKE * high


def _divides_whole(left: Expression, meant: Fraction) -> bool:
    """Return whether a side is right with each quotient cut: "(1080 / 16) × 60 = 67 × 60"."""
    try:
        return _divides(left) and _cut(left).exact == meant
    except Undefined:
        return False


def _divides(side: Expression) -> bool:
    return isinstance(side, Operation) and ("/" in side.symbols or any(map(_divides, side.parts)))


def _cut(side: Expression) -> Value:
    """Return the value of a side with each quotient of whole numbers cut."""
    if not isinstance(side, Operation):
        return evaluate(side, {})
    total = _cut(side.parts[0])
    for symbol, part in zip(side.symbols, side.parts[1:], strict=True):
        step = Operation((symbol,), (Number(total.exact), Number(_cut(part).exact)))
        total = evaluate(step, {})
        if symbol == "/":
            total = exactly(floor(total.exact))
    return total


def _restates(right: Expression, one: Fraction, other: Fraction) -> bool:
    """Return whether a product has round numbers for those before: "= 1000 × 10^12 × 0.4"."""
    if not isinstance(right, Operation) or abs(one - other) > _LIKE * max(one, other):
        return False
    return _is_round(right)


def _is_round(side: Expression) -> bool:
    if isinstance(side, Operation):
        return all(map(_is_round, side.parts))
    return isinstance(side, Number) and len(str(side.value / side.unit).strip("0")) <= _ROUND


def _converted(left: Side, right: Side, one: Fraction, other: Fraction) -> str:
    """Return why sides differ by a conversion: one is of bytes, "100 KB = 100 × 1024 / 2"."""
    if "bytes" not in (left.unit, right.unit) or left.unit == right.unit or not (one and other):
        return ""
    ratio = max(one, other) / min(one, other)
    if ratio < _LEAST_CONVERTED:
        return ""
    number = right.expression
    # "4096 × 8 × 2 = 35,536 bytes" has no unit to be off by.
    whole = isinstance(number, Number) and number.unit == 1 and not number.rounded
    like = 0 if whole and isinstance(left.expression, Operation) else _LIKE
    conversions = _SCALES if right.unit == "bytes" and _ends_in_width(left.expression) else _CONVERSIONS
    near = (abs(ratio - conversion) <= like * ratio for conversion in conversions)
    return "converts to another unit" if any(near) else ""


def _ends_in_width(side: Expression) -> bool:
    """Return whether a product counts bytes itself: "2 × 28 × 2048 × 256 × 4"."""
    if not (isinstance(side, Operation) and set(side.symbols) == {"*"} and len(side.parts) > 2):
        return False
    last = side.parts[-1]
    return isinstance(last, Number) and last.value in _WIDTHS


def _apart(left: Side, right: Side, one: Number, other: Number) -> str:
    slip = left.unit == "parameters" and other.rounded and is_typed_for(other, one.value)  # "124,439,808 ≈ 142M"
    if left.unit and left.unit != right.unit and not slip:
        return "gives a number in another unit"  # "1 byte = 8 bits"
    high = max(one.value, other.value)
    rough = right.loose or one.unit < 1 or other.unit < 1
    if rough and high < _LEAST_COMPARED:
        return "states two sizes"  # "50    ~1.2"
    ratio = high / min(one.value, other.value)
    if ratio > _FAR and not any(abs(ratio / unit - 1) <= _LIKE for unit in (10, 100, 10**3, 10**6, 10**9)):
        return TWO_NUMBERS  # "3k = 8", to be solved for k
    if right.loose and _is_round(one) and _is_round(other):
        return TWO_NUMBERS  # "1000 words have ~5000 characters"
    exact = one.unit == other.unit == 1 and not (one.rounded or other.rounded)
    if exact and (high < _LEAST_TYPED or not is_one_slip(str(one.value), str(other.value))):
        return TWO_NUMBERS  # "BATCH_SIZE=4 # 2"
    return ""


def _is_range(right: Side, one: Expression, other: Expression) -> bool:
    """Return whether two powers of one base are the ends of a range: "2^-6 ~ 2^9"."""
    powers = [side for side in (one, other) if isinstance(side, Operation) and side.symbols == ("^",)]
    return right.loose and len(powers) == 2 and powers[0].parts[0] == powers[1].parts[0]


def _lost_powers(left: Expression, meant: Fraction) -> bool:
    """Return whether a side is right with its last digits as exponents: "163 - 1 = 4095"."""
    try:
        return any(evaluate(one, {}).exact == meant for one in _with_powers(left))
    except Undefined:
        return False


def _with_powers(side: Expression) -> Iterator[Expression]:
    """Yield a side with a number of two to four digits read as a power: 224 as 2²⁴."""
    if isinstance(side, Number):
        digits = str(side.value)
        if side.unit == 1 and not side.rounded and digits.isdecimal() and 1 < len(digits) <= _MOST_DIGITS:
            for cut in range(1, len(digits)):
                base, exponent = Fraction(int(digits[:cut])), Fraction(int(digits[cut:]))
                if 1 < exponent <= _MOST_EXPONENT and digits[cut] != "0":
                    yield Operation(("^",), (Number(base), Number(exponent)))
    elif isinstance(side, Operation) and len(side.parts) <= _MOST_PARTS:
        for place, part in enumerate(side.parts):
            for power in _with_powers(part):
                yield side._replace(parts=(*side.parts[:place], power, *side.parts[place + 1 :]))


def _shapes(left: Expression, right: Expression) -> bool:
    """Return whether the sides are shapes of a product: "(512 × 64) × (64 × 512) = 512 × 512"."""
    if not (isinstance(left, Operation) and set(left.symbols) == {"*"} and isinstance(right, Operation)):
        return False
    pairs = [part.parts for part in (*left.parts, right) if isinstance(part, Operation) and part.symbols == ("*",)]
    return len(pairs) == len(left.parts) + 1 > 2 and (pairs[0][0], pairs[-2][1]) == pairs[-1]
