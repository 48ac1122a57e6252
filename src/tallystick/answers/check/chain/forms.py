"""Other expressions that a side may stand for: in another unit, with a bias, below a slash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.answers.check.chain.binary import BILLION, MEASURED
from tallystick.answers.check.chain.sides import PERCENT, numbers_in, paired_parts
from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, is_sum
from tallystick.derivations.statements import Side


def with_bias(matrix: Expression) -> Iterator[Expression]:
    """Yield the sums of a matrix and its bias: 896 × 128 + 128 of "k_proj (+bias)"."""
    if isinstance(matrix, Operation) and matrix.symbols == ("*",):
        yield from (Operation(("+",), (matrix, size)) for size in reversed(matrix.parts))


def without_first(left: Expression) -> Expression | None:
    """Return a sum without a number that it goes on from, or None.

    Example: "≈ 23.4M + 512 × 768 + 2 × 768 ≈ 0.4M". The last number of "a + b + c = d" sums all.
    """
    if not (is_sum(left) and len(left.parts) > 2 and isinstance(left.parts[0], Number)):
        return None
    rest = left._replace(symbols=left.symbols[1:], parts=left.parts[1:])
    return rest if any(isinstance(part, Operation) for part in rest.parts) else None


def without_note(side: Expression, *, rounded: bool = False) -> Expression:
    """Return a number with a letter without the name or share behind it: "617M (0.4%)".

    Args:
        side: the number and what is behind it.
        rounded: whether any rounded number behind it is a note: "1502M (~1.5B)".
    """
    if not (isinstance(side, Operation) and side.symbols == ("(",)):
        return side
    number, note = side.parts
    noted = isinstance(note, Name) or (isinstance(note, Number) and note.rounded and (rounded or note.unit <= PERCENT))
    return number if noted and isinstance(number, Number) and number.rounded else side


def in_unit(side: Side, unit: int) -> Expression:
    """Return a number in its unit: 14 for "2 × 7 × 2^30 / 2^30 = 14 GiB", 48 for "48 B"."""
    number = side.expression
    if isinstance(number, Operation) and number.symbols[-1] == "/":  # "8,508,230,400 / 1024 KB"
        return number._replace(parts=(*number.parts[:-1], in_unit(side._replace(expression=number.parts[-1]), unit)))
    if not isinstance(number, Number) or not number.rounded or (side.unit not in MEASURED and unit != BILLION):
        return number
    if number.unit > unit:  # "204.8 MB" has its own letter, and counts no KB
        return number
    return Number(number.value / unit, number.unit / unit)


def are_results(left: Expression, right: Expression) -> bool:
    """Return whether a sum of rounded numbers has the results of as many computed addends.

    Example: "96 × 12 × 12288² + 50000 × 12288 ≈ 173.9B + 0.6B".
    """
    pairs = paired_parts(left, right) if is_sum(left) else []
    computed = all(isinstance(part, Operation) for part, _ in pairs)
    return bool(pairs) and computed and all(isinstance(part, Number) and part.rounded for _, part in pairs)


def results_of(sides: Sequence[Side]) -> Expression | None:
    """Return the sum of a chain's results if its last number is their sum, the last result first.

    Example: "a × b = 2", "+ c × d = 4", "+ e × f = 3", and below them "= 9".
    """
    added, last = [side.expression for side in sides[1:-2]], sides[-2].expression
    results = [
        one.parts[0] for one in added if is_sum(one) and len(one.parts) == 2 and isinstance(one.parts[0], Number)
    ]
    if not results or len(results) < len(added) or not isinstance(last, Number):
        return None
    return Operation(("+",) * len(results), (last, *results))


def below(side: Expression) -> Expression:
    """Return a product with all factors after a slash below it: "16 × 20 / 2 × 2 = 80"."""
    if not (isinstance(side, Operation) and "/" in side.symbols and "*" in side.symbols):
        return side
    cut = side.symbols.index("/") + 1
    above, below = side.parts[:cut], side.parts[cut:]
    parts = (product(part) for part in (above, below))
    return Operation(("/",), tuple(parts))


def divided(side: Expression) -> tuple[Expression, Expression] | None:
    """Return what a product with one divisor, its last part, divides, and the divisor."""
    if not (isinstance(side, Operation) and side.symbols[-1] == "/" and set(side.symbols[:-1]) <= {"*"}):
        return None
    return product(side.parts[:-1]), side.parts[-1]


def product(parts: tuple[Expression, ...]) -> Expression:
    """Return the product of some parts, or the only one."""
    return Operation(("*",) * (len(parts) - 1), parts) if len(parts) > 1 else parts[0]


def may_lack(side: Expression) -> bool:
    """Return whether a side may omit a unit: a sum, or a product with decimals.

    12 × 768 × 12 cannot be a number of millions.
    """
    if not isinstance(side, Operation):
        return False
    return side.symbols[0] in "+-" or any(number.is_decimal for number in numbers_in(side))


def has_unit(side: Expression) -> bool:
    """Return whether a number of a side has a unit or letter: "2 × 24.9M"."""
    return any(number.rounded and number.unit > 1 for number in numbers_in(side))


def is_sum_of_decimals(side: Expression) -> bool:
    """Return whether a side adds numbers that omit their unit, as decimals show: "38.6 + 106".

    A count may multiply the sum.
    """
    if isinstance(side, Operation) and side.symbols == ("*",) and isinstance(side.parts[0], Number):
        return is_sum_of_decimals(side.parts[1])
    if not is_sum(side):
        return False
    numbers = [part for part in side.parts if isinstance(part, Number) and not part.rounded]
    return len(numbers) == len(side.parts) and any(part.is_decimal for part in numbers)
