"""The numbers and variables of a side, its first and last parts, and whether it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.derivations.arithmetic import ASIDES, Expression, Name, Number, Operation
from tallystick.derivations.statements import Side

PERCENT = Fraction(1, 100)
LEAST_REFERENCE = 1000  # a smaller number in a sum is a size, not the result of an earlier line


def symbolic(side: Expression) -> bool:
    """Return whether a side has variables, and only small numbers."""
    return has_names(side) and all(number.value < LEAST_REFERENCE for number in numbers_in(side))


def numbers_in(expression: Expression) -> Iterator[Number]:
    """Yield the numbers in an expression."""
    if isinstance(expression, Number):
        yield expression
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from numbers_in(part)


def names_in(expression: Expression) -> Iterator[str]:
    """Yield the names of the variables in an expression."""
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from names_in(part)


def has_names(expression: Expression) -> bool:
    """Return whether an expression has a variable. It is asked often."""
    if expression.__class__ is Operation:
        return any(map(has_names, expression.parts))
    return expression.__class__ is Name


def paired_parts(left: Expression, right: Expression) -> list[tuple[Expression, Expression]]:
    """Return the parts of two sums or products of one shape, in pairs, or []."""
    if not (isinstance(left, Operation) and isinstance(right, Operation) and left.symbols == right.symbols):
        return []
    return list(zip(left.parts, right.parts, strict=True))


def is_share(expression: Expression) -> bool:
    """Return whether a side is a percentage, or a small number with a power of ten: 3.1e-4."""
    return isinstance(expression, Number) and expression.rounded and expression.unit <= PERCENT


def first_addend(side: Expression) -> Expression:
    """Return the first addend of a sum, or the side itself, such as "-0.4883"."""
    if not (isinstance(side, Operation) and side.symbols[0] in ("+", "-")):
        return side
    first = side.parts[0]
    return side if isinstance(first, Number) and not first.value else first


def first_factor(side: Expression) -> Expression:
    """Return the first factor of a product, or the side itself."""
    return side.parts[0] if isinstance(side, Operation) and side.symbols[0] in ("*", "/") else side


def last_addend(side: Expression) -> Expression:
    """Return the last addend of a sum, or the side itself."""
    return side.parts[-1] if isinstance(side, Operation) and side.symbols[-1] == "+" else side


def has_aside(expression: Expression) -> bool:
    """Return whether parentheses behind a number may only comment on it. It is asked often."""
    if expression.__class__ is not Operation:
        return False
    for part in expression.parts:
        if part.__class__ is Operation and has_aside(part):
            return True
    return not ASIDES.isdisjoint(expression.symbols)


def computes(side: Expression, *, asides: bool) -> bool:
    """Return whether a side is computed, and not a number with a comment: "190,711,296 (~191M)"."""
    return isinstance(side, Operation) and not (asides and set(side.symbols) <= ASIDES)


def longest(sides: Sequence[Side]) -> Side | None:
    """Return the number with the most digits before its trailing zeros, or None."""
    return max(reversed(sides), key=lambda side: len(str(_stated(side)).rstrip("0")), default=None)


def most_precise(sides: Sequence[Side]) -> Side:
    """Return the first of two numbers if the last rounds it, else the last exact side.

    Example: "6.96B ≈ 7B".
    """
    first, last = sides[0].expression, sides[-1].expression
    if isinstance(first, Number) and isinstance(last, Number) and first.unit < last.unit:
        return sides[0]
    if sides[-1].loose and computes(last, asides=True):  # "12 × d² + 4 × d ≈ 12 × d²"
        return next((side for side in reversed(sides) if not side.loose), sides[-1])
    return sides[-1]


def _stated(side: Side) -> Fraction:
    return side.expression.value if isinstance(side.expression, Number) else Fraction(0)
