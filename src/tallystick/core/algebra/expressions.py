"""Expressions over config keys, as nested tuples: their value, and the keys in them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

# A constant, a config key, or (operator, left, right).
Expression: TypeAlias = "int | str | tuple[str, Expression, Expression]"

# Operators that no polynomial has: a quotient rounded down or up, maximum, minimum.
ROUNDINGS = ("floor", "ceil", "max", "min")


def _quotient(left: int, right: int) -> int | Fraction:
    if left % right == 0:
        return left // right
    from fractions import Fraction  # a slow import: nearly all quotients are whole

    return Fraction(left, right)


OPERATORS: dict[str, Callable[[Any, Any], int | Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "**": operator.pow,
    "floor": operator.floordiv,
    "ceil": lambda left, right: -(-left // right),
    "max": max,
    "min": min,
}


def evaluate(expression: Expression, values: Mapping[str, int]) -> int | Fraction:
    """Return the value of an expression.

    Args:
        expression: the expression.
        values: the value of each key in it.

    Returns:
        An integer, or a fraction if a quotient is not whole.

    >>> evaluate(("*", 256, ("ceil", "d", 96)), {"d": 100})
    512
    """
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return values[expression]
    symbol, left, right = expression
    return OPERATORS[symbol](evaluate(left, values), evaluate(right, values))


def atoms(expression: Expression) -> Iterator[Expression]:
    """Yield the keys and roundings of an expression in written order; do not look inside roundings.

    >>> list(atoms(("*", "heads", ("floor", "n_embd", "heads"))))
    ['heads', ('floor', 'n_embd', 'heads')]
    """
    if isinstance(expression, str) or (isinstance(expression, tuple) and expression[0] in ROUNDINGS):
        yield expression
    elif isinstance(expression, tuple):
        yield from atoms(expression[1])
        yield from atoms(expression[2])


def keys(expression: Expression) -> Iterator[str]:
    """Yield the keys of an expression, also those inside roundings."""
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, tuple):
        yield from keys(expression[1])
        yield from keys(expression[2])
