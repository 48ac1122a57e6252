"""An integer that remembers the config keys and operations that it was computed from.

>>> n_embd = Dim(768, "n_embd")
>>> 3 * n_embd
Dim(2304, '3*n_embd')

A blueprint computes its shapes from such integers. So the same lines give the count and its
formula, and the two cannot drift apart.
"""

from __future__ import annotations

from operator import floordiv
from typing import Any, NoReturn

from tallystick.core.algebra.expressions import OPERATORS, Expression
from tallystick.core.algebra.notations import write
from tallystick.errors import BadInput


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


def _apply(symbol: str, left: int, right: int) -> Dim:
    operate = floordiv if symbol == "/" else OPERATORS[symbol]  # `/` gets here only without a remainder
    value = operate(int(left), int(right))
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


def expression_of(value: int) -> Expression:
    """Return the expression of a `Dim`; any other integer is its own expression."""
    return value.expression if isinstance(value, Dim) else int(value)


def _named(value: int) -> str:
    """Return `n_embd = 768` for a config key, `768` for a plain number."""
    expression = expression_of(value)
    return str(int(value)) if isinstance(expression, int) else f"{write(expression)} = {int(value)}"
