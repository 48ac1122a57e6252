"""An integer that remembers the config keys and operations that it was computed from.

>>> n_embd = Dim(768, "n_embd")
>>> 3 * n_embd
Dim(2304, '3*n_embd')

A blueprint computes its shapes from such integers. So the same lines give the count and its
formula, and the two cannot drift apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from tallystick.errors import BadInput

# A constant, a config key, or (operator, left, right).
Expression: TypeAlias = "int | str | tuple[str, Expression, Expression]"

# Operators that no polynomial has: a quotient rounded down or up, maximum, minimum.
ROUNDINGS = ("floor", "ceil", "max", "min")

_PRECEDENCE = {"+": 1, "-": 1, "floor": 2, "ceil": 2, "*": 3, "/": 3}
_PRODUCT, _ATOM = 3, 4


class Dim(int):
    """An ``int`` with the expression over config keys that gave its value.

    ``+``, ``-`` and ``*`` work as on integers. ``/`` is exact: it raises `BadInput` if the
    quotient is not whole. So a width that the heads do not divide is reported with its config keys.
    """

    expression: Expression

    def __new__(cls, value: int, expression: Expression) -> Dim:  # noqa: D102
        self = super().__new__(cls, value)
        self.expression = expression
        return self

    def __reduce__(self) -> tuple[type[Dim], tuple[int, Expression]]:
        return Dim, (int(self), self.expression)

    def __repr__(self) -> str:
        return f"Dim({int(self)}, {write(self.expression)!r})"

    def __add__(self, other: int) -> Dim:
        return _apply("+", self, other)

    def __radd__(self, other: int) -> Dim:
        return _apply("+", other, self)

    def __sub__(self, other: int) -> Dim:
        return _apply("-", self, other)

    def __rsub__(self, other: int) -> Dim:
        return _apply("-", other, self)

    def __mul__(self, other: int) -> Dim:
        return _apply("*", self, other)

    def __rmul__(self, other: int) -> Dim:
        return _apply("*", other, self)

    def __truediv__(self, other: int) -> Dim:
        if other == 0 or int(self) % int(other):
            raise BadInput(f"{_named(self)} is not divisible by {_named(other)}", code="indivisible")
        return _apply("/", self, other)

    def _forgets(self, *_: Any) -> NoReturn:
        raise TypeError("a Dim has +, - and * and an exact /; any other operation would drop its expression")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _forgets


_OPERATORS: dict[str, Callable[[Any, Any], int | Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": Fraction,
    "floor": operator.floordiv,
    "ceil": lambda left, right: -(-left // right),
    "max": max,
    "min": min,
}


def _apply(symbol: str, left: int, right: int) -> Dim:
    value = _OPERATORS[symbol](int(left), int(right))  # `/` gets here only without a remainder
    return Dim(int(value), (symbol, expression_of(left), expression_of(right)))


def floor(left: int, right: int) -> Dim:
    """Return a quotient rounded down.

    >>> floor(Dim(7, "width"), 2)
    Dim(3, 'width//2')
    """
    return _apply("floor", left, right)


def ceil(left: int, right: int) -> Dim:
    """Return a quotient rounded up.

    >>> ceil(Dim(7, "width"), 2)
    Dim(4, '-(-width//2)')
    """
    return _apply("ceil", left, right)


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
    return _OPERATORS[symbol](evaluate(left, values), evaluate(right, values))


def expression_of(value: int) -> Expression:
    """Return the expression of a `Dim`; any other integer is its own expression."""
    return value.expression if isinstance(value, Dim) else int(value)


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


def _named(value: int) -> str:
    """Return `n_embd = 768` for a config key, `768` for a plain number."""
    expression = expression_of(value)
    return str(int(value)) if isinstance(expression, int) else f"{write(expression)} = {int(value)}"


def write(
    expression: Expression,
    *,
    times: str = "*",
    values: Mapping[str, int] | None = None,
    thousands: str = "",
) -> str:
    """Return an expression as text, with the fewest parentheses.

    With the default `times`, the text is valid in Python and SymPy, and a quotient rounded up is
    ``-(-a//b)``. Any other `times` makes text for people, with ⌈a/b⌉.

    Args:
        expression: the expression.
        times: the multiplication sign, with any spaces.
        values: numbers that replace the keys; None keeps the keys.
        thousands: separator of thousands in numbers.

    >>> write(("*", "n_embd", ("*", 3, "n_embd")))
    'n_embd*3*n_embd'
    >>> write(("*", 2, ("+", "a", "b")), times=" × ", values={"a": 3, "b": 4})
    '2 × (3 + 4)'
    >>> write(("*", 256, ("ceil", "d", 96))), write(("*", 256, ("ceil", "d", 96)), times="·")
    ('256*(-(-d//96))', '256·⌈d/96⌉')
    """
    for_people = times != "*"

    def part(node: Expression, least: int) -> str:
        if isinstance(node, str) and values is not None:
            node = values[node]
        if not isinstance(node, tuple):
            return f"{node:,}".replace(",", thousands) if isinstance(node, int) else node
        symbol, left, right = node
        if symbol in ("max", "min"):
            return f"{symbol}({part(left, 0)}, {part(right, 0)})"
        level = _PRECEDENCE[symbol]
        if symbol in ("floor", "ceil"):
            above, below = part(left, _PRODUCT), part(right, _ATOM)
            if for_people:
                return f"⌊{above}/{below}⌋" if symbol == "floor" else f"⌈{above}/{below}⌉"
            text = f"{above}//{below}" if symbol == "floor" else f"-(-{above}//{below})"
        else:
            between = {"*": times, "/": "/"}.get(symbol, f" {symbol} ")
            # a - (b - c) and a/(b*c) need their parentheses; a*(b*c) and a + (b + c) do not.
            text = part(left, level) + between + part(right, level + (symbol in "-/"))
        return f"({text})" if level < least else text

    return part(expression, 0)
