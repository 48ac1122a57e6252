"""Read the letters of numbers both ways: kilo as 1,000 and as 1,024."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.chain.sides import numbers_in, paired_parts
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, alone, exactly, is_sum
from tallystick.derivations.statements import Side

BINARY_LETTER = "is right if it counts 1,024 as 1,000"
DECIMAL_LETTER = "is right if it counts 1,000 as 1,024"
MEASURED = ("bytes", "operations", "multiplications")  # units of numbers that count no parameters
BILLION = 10**9
BINARY = tuple(Fraction(1024, 1000) ** power for power in (1, 2, 3))  # 384 MB that means MiB
LIKE = Fraction(1, 50)  # a ratio this near to a conversion is one
MOST_PREFIXES = 4  # kilo, mega, giga, tera
PREFIXES = (Fraction(1000), Fraction(1024))

_NEAR_POWER = Fraction(1, 1000)  # a ratio this near to 1.024 is of the two meanings of kilo
_LETTERED = tuple(PREFIXES[0] ** power for power in range(1, MOST_PREFIXES))  # the last digits of whole letters
_MOST_DECIMALS = 3
# The power of 1,024 that a unit names: 3 for a last digit of "14 GiB", and of "14.0 GiB"
_NAMED = {
    PREFIXES[1] ** power / 10**decimals: power
    for power in range(1, MOST_PREFIXES + 1)
    for decimals in range(_MOST_DECIMALS + 1)
}


def binary(left: Side, right: Side, one: Fraction, other: Fraction) -> str:
    """Return why a rounded number of bytes or operations may be right: 1,024 counts as 1,000."""
    number, given = right.expression, left.expression
    counts = _counts_binary(number, one) or _counts_binary(given, other) or _next_letter(given, number)
    multiplies = isinstance(given, Operation) and given.symbols[0] == "*" and _multiplies_binary(given, one, other)
    if one != other and (counts or multiplies or _restates(given, number)):
        return BINARY_LETTER
    ratio = max(one, other) / min(one, other)
    lettered = right.unit == "bytes" or (isinstance(number, Operation) and _has_billions(given))
    if lettered and isinstance(given, Operation) and abs(ratio / BILLION - 1) <= LIKE:
        return "is right if B stands for bytes"  # "7B × 0.5B = 3.5 GB", "128K × 2B = 131,072 × 2"
    if not isinstance(number, Number) or right.unit not in MEASURED:
        return ""
    if isinstance(given, Number) and given.rounded and given.unit >= PREFIXES[0]:
        number = given  # "24 KB = 24,576 bytes"
    if not number.rounded or keeps_letter(left, number):
        return ""
    near = min(number.unit / number.value, _NEAR_POWER)  # one unit of the last digit, as 7.93 for 7.924 GiB
    named = _NAMED.get(number.unit, 0)  # "7 × 10^9 × 2 = 14 GiB"
    if named and abs(ratio / Fraction(1024, 1000) ** named - 1) <= near:
        return DECIMAL_LETTER
    powers: Sequence[Fraction] = BINARY[: binary_powers(number)]
    if isinstance(given, Operation) and not has_letter(left):  # "= 8.4 GB" mixes GB and MiB
        powers = powers_of_letter(number) if one > other else ()
    return BINARY_LETTER if any(abs(ratio / power - 1) <= near for power in powers) else ""


def _next_letter(left: Expression, right: Expression) -> bool:
    """Return whether a number has the next letter of 1,024 of the former: "442.375 M = 0.432 B"."""
    if not (isinstance(left, Number) and isinstance(right, Number) and left.rounded and right.rounded):
        return False
    return left.unit < right.unit and 2 * abs(left.value - right.value * BINARY[0]) <= right.unit


def has_letter(side: Side) -> bool:
    """Return whether a number of a side has a letter, such as "320 KB", or is divided.

    The letter of 1.64B weights counts no 1,024.
    """
    if isinstance(side.expression, Operation) and "/" in side.expression.symbols:
        return True
    numbers = [number for number in numbers_in(side.expression) if number.rounded]
    parts = side.expression.parts if isinstance(side.expression, Operation) else ()
    last = parts[-1] if parts else None
    by_width = isinstance(last, Number) and not last.rounded  # "6.7B weights × 2 bytes"
    return any(number.value < BILLION or (side.unit == "bytes" and not by_width) for number in numbers)


def keeps_letter(left: Side, number: Expression) -> bool:
    """Return whether a product of bytes has the letter of its last factor: "32 × 8 MB = 256 MB".

    No kilo of 1,024 is between the two.
    """
    product = left.expression
    if not (isinstance(product, Operation) and set(product.symbols) == {"*"} and isinstance(number, Number)):
        return False
    lettered = [one for one in product.parts if isinstance(one, Number) and one.rounded]
    last = len(lettered) == 1 and lettered[0] is product.parts[-1] and left.unit == "bytes"
    return last and number.rounded and _letter(lettered[0].value) == _letter(number.value)


def _letter(size: Fraction) -> int:
    """Return the power of 1,000 that the letter of a number below 1,000 has: 2 for 256 MB."""
    return max((one for one in range(MOST_PREFIXES + 1) if size >= 1000**one), default=0)


def _has_billions(side: Expression) -> bool:
    """Return whether a factor has the letter B: "2B"."""
    parts = side.parts if isinstance(side, Operation) else ()
    return any(isinstance(one, Number) and one.rounded and one.unit == BILLION for one in parts)


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
    numbers = side.parts if is_sum(side) else (side,)
    lettered = [number for number in numbers if isinstance(number, Number) and number.rounded]
    if len(lettered) < len(numbers):
        return False
    binary = [in_binary(number) for number in lettered]
    last = lettered[-1]
    whole = last.unit in _LETTERED and last.value >= PREFIXES[0] * last.unit  # "2560M" has the letter M, not G
    return sum(binary) == meant or (whole and len(lettered) == 1 and in_binary(last, last.unit) == meant)


def _multiplies_binary(product: Operation, value: Fraction, meant: Fraction) -> bool:
    """Return whether a product is exactly a number if the letter of a factor counts 1,024.

    Example: "128 × 4.5M = 603,979,776".
    """
    lettered = [one for one in product.parts if isinstance(one, Number) and one.rounded and one.value >= PREFIXES[0]]
    return (
        len(lettered) == 1
        and set(product.symbols) == {"*"}
        and value * in_binary(lettered[0]) == meant * lettered[0].value
    )


def _restates(left: Expression, right: Expression) -> bool:
    """Return whether a product writes another's letters out: "2 × 128K = 2 × 131,072"."""
    pairs = paired_parts(left, right)
    changed = [(one, other) for one, other in pairs if one != other]
    written = all(isinstance(other, Number) and _counts_binary(one, other.value) for one, other in changed)
    return bool(pairs) and written


def powers_of_letter(number: Number) -> Sequence[Fraction]:
    """Return what a letter may multiply a number by if it counts 1,024, and 1,000 each time.

    "297 MB" and "0.297 GB" are the same number here; "8.4 GB" has no other letter. "800 MB" may
    be rounded to its zeros.
    """
    if number.unit in _LETTERED and number.value % (10 * number.unit) == 0:
        return BINARY[: binary_powers(number)]
    possible = enumerate(BINARY[: binary_powers(number)], 1)
    return [factor for power, factor in possible if 1000 ** (power - 1) <= number.unit <= 1000**power]


def meets_binary(number: Expression, meant: Value) -> bool:
    """Return whether a rounded number of bytes is a value if its letter counts 1,024."""
    stated = alone(number, loose=False) if isinstance(number, Number) and number.rounded else None
    powers = BINARY[: binary_powers(number)] if isinstance(number, Number) else ()
    return stated is not None and any(stated.times(exactly(power)).meets(meant) for power in powers)


def in_binary(number: Number, size: Fraction | None = None) -> Fraction:
    """Return a number with a letter in powers of 1,024: 2^20 for 1M.

    The letter is the largest one below `size`, or below the number.
    """
    return number.value * Fraction(1024, 1000) ** _letter(number.value if size is None else size)
