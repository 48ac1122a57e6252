"""Arithmetic as people write it: exact values, and the bounds that rounded numbers leave.

>>> product = Operation(("*",), (Number(Fraction(50257)), Name("d")))
>>> int(evaluate(product, {"d": exactly(768)}).exact)
38597376

``derivations/expressions/parser.py`` builds the expression trees. Nothing is run as code, and no
number exceeds `MOST_BITS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from operator import add, mul, sub, truediv
from typing import NamedTuple, TypeAlias, TypeGuard

from tallystick.core.budget import Budget, current
from tallystick.errors import BadInput

MOST_BITS = 1000  # per numerator or denominator: 300 digits; the largest models need 13, a float holds 1,024 bits

ASIDES = frozenset(["(", "(+"])  # join a number and parentheses that may only comment on it

Expression: TypeAlias = "Number | Name | Operation"


ONE = Fraction(1)  # the unit of a whole number: comparing identities is much faster


class Undefined(Exception):
    """An expression without a value: an undefined name, a division by zero, or a root."""


class Number(NamedTuple):
    """A number as written.

    `unit` is the value of one unit in its last digit: 100,000 for 38.6M, 1/10 for 38.6, 1 for 386.
    """

    value: Fraction
    unit: Fraction = ONE
    rounded: bool = False  # 38.6M, 3.9e7 and 31.0% are always rounded
    pointed: bool = False  # it has a point before its letter: the zeros of 5.0B are digits, those of 50B may be none

    @property
    def is_decimal(self) -> bool:
        """Whether it has digits after the point, or is a percentage."""
        return self.unit.numerator < self.unit.denominator  # much faster than `unit < 1`


class Name(NamedTuple):
    """A variable."""

    name: str


class Operation(NamedTuple):
    """``parts`` joined left to right by ``symbols`` of one precedence: ``+ -``, ``* /`` or ``^``.

    The symbol ``(`` joins a number and the parentheses after it, "768 (12 × 64)": a factor or an
    aside. The symbol ``(+`` joins parentheses that begin with a plus sign, "589,824 (+768 biases)":
    an addend or an aside.
    """

    symbols: tuple[str, ...]
    parts: tuple[Expression, ...]


class Value(NamedTuple):
    """An exact value, with the bounds left open by the rounding of its numbers."""

    exact: Fraction
    low: Fraction
    high: Fraction

    @property
    def is_exact(self) -> bool:
        """Whether it was computed without rounding; equal bounds of other values do not count."""
        return self.low is self.high

    def plus(self, other: Value) -> Value:
        """Return the sum of two values and of their bounds."""
        if self.is_exact and other.is_exact:  # the common case: one addition instead of three
            return exactly(self.exact + other.exact)
        return Value(*map(add, self, other))

    def less(self, addend: Value) -> Value:
        """Return a sum without one of its addends."""
        if self.is_exact and addend.is_exact:
            return exactly(self.exact - addend.exact)
        exact, low, high = map(sub, self, addend)
        return exactly(exact) if low == high else Value(exact, low, high)

    def times(self, other: Value) -> Value:
        """Return the product of two values that are not negative, and of their bounds."""
        if self.is_exact and other.is_exact:
            return exactly(self.exact * other.exact)
        return Value(*map(mul, self, other))

    def meets(self, other: Value) -> bool:
        """Return whether the bounds of both values overlap."""
        if self.is_exact and other.is_exact:
            return self.exact == other.exact
        return self.low <= other.high and other.low <= self.high


def decimal(written: str) -> Number:
    """Return digits with a point or a comma before the decimals as a number: "31.0", "31,0"."""
    digits, _, decimals = written.replace(",", ".").partition(".")
    unit = Fraction(1, 10 ** len(decimals))
    return Number(Fraction(digits + decimals) * unit, unit)


def exactly(number: int | Fraction) -> Value:
    """Return a value without rounding."""
    whole = number if isinstance(number, Fraction) else Fraction(number)
    return Value(whole, whole, whole)


def evaluate(
    expression: Expression,
    names: Mapping[str, Value],
    *,
    loose: bool = False,
    asides: bool = False,
    replaced: Callable[[Number], Value | None] = lambda _: None,
) -> Value:
    """Return the value of an expression.

    Args:
        expression: the tree built by the parser.
        names: values of the variables.
        loose: treat decimals as rounded too, as next to ``≈``. Otherwise only numbers such as
            38.6M are rounded.
        asides: treat parentheses after a number as comments, not as factors.
        replaced: returns another value for a number as written, or None to keep it.

    Raises:
        Undefined: if the expression has no value.
        BadInput: if a number would exceed `MOST_BITS`.
    """
    return _Evaluation(names, loose, asides, replaced, current()).value(expression)


class _Evaluation(NamedTuple):
    """Arguments of one `evaluate` call.

    A nested recursive function would form a reference cycle, which stays as garbage.
    """

    names: Mapping[str, Value]
    loose: bool
    asides: bool
    replaced: Callable[[Number], Value | None]
    budget: Budget

    def value(self, node: Expression) -> Value:
        self.budget.step(9)
        if isinstance(node, Number):
            rounded = node.rounded or (self.loose and node.is_decimal)
            exact = node.value  # asked most often, it calls nothing more
            return self.replaced(node) or (_rounded(node, True) if rounded else Value(exact, exact, exact))
        if isinstance(node, Name):
            if node.name not in self.names:
                raise Undefined(node.name)
            return self.names[node.name]
        total = self.value(node.parts[0])
        for symbol, part in zip(node.symbols, node.parts[1:], strict=True):
            if symbol in ASIDES and self.asides:
                continue
            total = _apply(symbol, total, self.value(part))
        return total


def divides(side: Expression) -> bool:
    """Return whether an expression holds a quotient: "(38.6 / 124.4) × 100%"."""
    return isinstance(side, Operation) and ("/" in side.symbols or any(map(divides, side.parts)))


def is_sum(side: Expression) -> TypeGuard[Operation]:
    """Return whether an expression is a sum and takes nothing away."""
    return isinstance(side, Operation) and set(side.symbols) == {"+"}


def alone(expression: Expression, *, loose: bool) -> Value | None:
    """Return the value of a side that is a single number, or None for other expressions.

    The last digit of a decimal is rounded; with `loose`, trailing zeros before its point are
    rounded too: those of 80M, not of 80.0M.
    """
    if not isinstance(expression, Number):
        return None
    if not loose or expression.is_decimal or expression.pointed or not expression.value:
        return _rounded(expression, expression.rounded or expression.is_decimal)
    zeros = trailing_zeros(expression.value / expression.unit)
    return _rounded(expression._replace(unit=expression.unit * 10**zeros), True)


def trailing_zeros(number: Fraction | int) -> int:
    """Return how many zeros end a number: 2 for 9,500."""
    digits = str(number)
    return len(digits) - len(digits.rstrip("0"))


def scaled(expression: Expression, by: int) -> Expression:
    """Multiply an expression whose numbers omit a unit, such as "38.6 + 85.1" in millions.

    In a sum each addend is multiplied by `by`, in a product one factor.
    """
    if isinstance(expression, Number) and expression.value and not expression.rounded:  # 0 omits none
        return Number(expression.value * by, expression.unit * by, rounded=True)
    if not isinstance(expression, Operation):
        return expression
    if expression.symbols[0] in "+-":
        return expression._replace(parts=tuple(scaled(part, by) for part in expression.parts))
    parts = list(expression.parts)
    decimal = next((place for place, part in enumerate(parts) if isinstance(part, Number) and part.is_decimal), None)
    if decimal is None:  # "12 × (10.5 + 104)"
        decimal = next((place for place, part in enumerate(parts) if _adds(part)), None)
    if decimal is not None:
        parts[decimal] = scaled(parts[decimal], by)
        return expression._replace(parts=tuple(parts))
    return Operation(("*",), (expression, Number(Fraction(by))))


def _adds(expression: Expression) -> bool:
    return isinstance(expression, Operation) and expression.symbols[0] in "+-"


def ungrouped(expression: Expression) -> Expression:
    """Read each number with three decimals as dot-grouped thousands: 12.288 becomes 12,288."""
    if isinstance(expression, Number) and expression.unit == Fraction(1, 1000) and not expression.rounded:
        return Number(expression.value * 1000)
    if isinstance(expression, Operation):
        return expression._replace(parts=tuple(ungrouped(part) for part in expression.parts))
    return expression


def _rounded(number: Number, rounded: bool) -> Value:
    if not rounded:
        return Value(number.value, number.value, number.value)
    half = number.unit / 2
    return Value(number.value, number.value - half, number.value + half)


_EXACT = {"+": add, "(+": add, "-": sub, "*": mul, "(": mul, "/": truediv}


def _apply(symbol: str, left: Value, right: Value) -> Value:
    if left.is_exact and right.is_exact and symbol in _EXACT and (symbol != "/" or right.exact):
        exact = _EXACT[symbol](left.exact, right.exact)
        _bounded(exact)
        return Value(exact, exact, exact)
    if symbol in ("+", "(+"):
        out = left.plus(right)
    elif symbol == "-":
        out = Value(left.exact - right.exact, left.low - right.high, left.high - right.low)
    elif symbol == "^":
        out = _power(left, right)
    else:
        if symbol == "/":
            if right.low <= 0 <= right.high:
                raise Undefined("division by zero")
            right = Value(*(1 / bound for bound in right))
        bounds = [one * other for one, other in product(left[1:], right[1:])]
        out = Value(left.exact * right.exact, min(bounds), max(bounds))
    for bound in out:
        _bounded(bound)
    return out


def _power(base: Value, exponent: Value) -> Value:
    power = exponent.exact
    if power.denominator != 1 or (power < 0 and base.low <= 0 <= base.high):
        raise Undefined("a root")
    if abs(power) * max(_bits(bound) for bound in base) > MOST_BITS and not set(base) <= {-1, 0, 1}:
        raise _too_large()
    bounds = [bound ** int(power) for bound in base]
    if base.low < 0 < base.high:
        bounds.append(Fraction(0))
    return Value(bounds[0], min(bounds), max(bounds))


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _bounded(number: Fraction) -> None:
    if _bits(number) > MOST_BITS:
        raise _too_large()


def _too_large() -> BadInput:
    return BadInput("gives a number of over 300 digits, too long for a parameter count", code="too-large")
