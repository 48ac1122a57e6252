"""An integer that remembers where it came from.

>>> n_embd = Dim(768, "n_embd")
>>> 3 * n_embd
Dim(2304, '3*n_embd')

A blueprint computes its shapes from such integers, so that the formula of a count is derived
from the very lines that give the count, and cannot drift from it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from tallystick.errors import BadInput

# A constant, the config key that was read, or (operator, left, right).
Expression: TypeAlias = "int | str | tuple[str, Expression, Expression]"

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_ATOM = 3


class Dim(int):
    """An ``int`` with the expression over config keys that gave it its value.

    ``+``, ``-`` and ``*`` work as on integers. ``/`` is exact: it raises `BadInput` where the
    quotient is not whole, which is how "heads that do not divide" is found, in the config's words.
    """

    expression: Expression

    def __new__(cls, value: int, expression: Expression) -> Dim:  # noqa: D102
        self = super().__new__(cls, value)
        self.expression = expression
        return self

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
            raise BadInput(f"{_named(self)} is not divisible by {_named(other)}")
        return _apply("/", self, other)

    def _forgets(self, *_: Any) -> NoReturn:
        raise TypeError("a Dim has +, - and * and an exact /; any other operation would drop its expression")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _forgets


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,  # reached only where it leaves no remainder
}


def _apply(symbol: str, left: int, right: int) -> Dim:
    value = _OPERATORS[symbol](int(left), int(right))
    return Dim(value, (symbol, expression_of(left), expression_of(right)))


def expression_of(value: int) -> Expression:
    """The expression of a `Dim`; any other integer is its own."""
    return value.expression if isinstance(value, Dim) else int(value)


def _named(value: int) -> str:
    """`n_embd = 768` for a config key, `768` for a plain number."""
    expression = expression_of(value)
    return str(int(value)) if isinstance(expression, int) else f"{write(expression)} = {int(value)}"


def write(
    expression: Expression,
    *,
    times: str = "*",
    values: Mapping[str, int] | None = None,
    thousands: str = "",
) -> str:
    """An expression as text, with no more parentheses than it needs.

    With `values`, each key is replaced by its number: the line that a teacher writes under it.

    >>> write(("*", "n_embd", ("*", 3, "n_embd")))
    'n_embd*3*n_embd'
    >>> write(("*", 2, ("+", "a", "b")), times=" × ", values={"a": 3, "b": 4})
    '2 × (3 + 4)'
    """

    def part(node: Expression, least: int) -> str:
        if isinstance(node, str) and values is not None:
            node = values[node]
        if not isinstance(node, tuple):
            return f"{node:,}".replace(",", thousands) if isinstance(node, int) else node
        symbol, left, right = node
        level = _PRECEDENCE[symbol]
        between = {"*": times, "/": "/"}.get(symbol, f" {symbol} ")
        # a - (b - c) and a/(b*c) need their parentheses; a*(b*c) and a + (b + c) do not.
        text = part(left, level) + between + part(right, level + (symbol in "-/"))
        return f"({text})" if level < least else text

    return part(expression, 0)
