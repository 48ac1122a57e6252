"""How a chain of a derivation is meant: what its parentheses say, which units it leaves out, whether its sides agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from tallystick.answers.claims import Claim
from tallystick.arithmetic import Expression, Name, Number, Operation, Value, alone, evaluate, scaled, ungrouped
from tallystick.derivation import Statement

SCALED = (10**6, 10**9, 10**3)  # units that numbers may leave out, millions before others
LITTLE = Fraction(1, 100)  # by so much two numbers that are written out may differ, and be about the same
LEAST_REFERENCE = 1000  # a smaller number in a sum is a size, not the result of an earlier line

Sides: TypeAlias = "Sequence[tuple[Expression, bool]]"  # each with whether ≈ stands before it


class Readings:
    """The readings of chains, under the values that the variables have."""

    def __init__(self, stated: Mapping[str, Value]) -> None:
        self.stated = stated

    def wrong(self, sides: Sides) -> int:
        """How many links of a chain are wrong, parentheses read as they fit best."""
        asides = self.asides(sides)
        pairs = pairwise(sides)
        return sum(not self.agree(left, right, loose=loose, asides=asides) for (left, _), (right, loose) in pairs)

    def meant(self, statement: Statement, sides: Sides, before: Claim | None) -> Sides:
        """As it is meant where it is not written out: "38.6 + 85.1 = 123.7M" in millions, 12.288 for 12,288."""
        if len(sides) < 2 or not self.wrong(sides):
            return sides
        last = sides[-1][0]
        others: list[Sides] = [[(ungrouped(side), loose) for side, loose in sides]]
        if isinstance(last, Number) and last.rounded and last.value >= LEAST_REFERENCE:
            for scale in SCALED:
                others.append([(scaled(side, scale) if _may_lack(side) else side, loose) for side, loose in sides])
        if statement.clause.lstrip().startswith("+") and before is not None:
            goes_on = Operation(("+",), (Number(before.stated), sides[0][0]))  # "a + b = c. + d = e"
            others.append([(goes_on, sides[0][1]), *sides[1:]])
        if _symbolic(sides[0][0]) and len(sides) > 2:
            others.append(sides[1:])  # the words of the formula are others than its numbers
        return next((one for one in others if not self.wrong(one)), sides)

    def asides(self, sides: Sides) -> bool:
        """Whether parentheses after a number only comment on it: the reading under which less is wrong."""
        if not any(_has_aside(side) for side, _ in sides):
            return False

        def wrong(asides: bool) -> tuple[int, Fraction]:
            pairs = list(pairwise(sides))
            apart = [
                abs(self.value(left, asides).exact - self.value(right, asides).exact) for (left, _), (right, _) in pairs
            ]
            agree = [self.agree(left, right, loose=loose, asides=asides) for (left, _), (right, loose) in pairs]
            return agree.count(False), sum(apart, Fraction(0))

        return wrong(True) <= wrong(False)

    def value(self, side: Expression, asides: bool, *, loose: bool = False) -> Value:
        """The value of a side; `asides` says that parentheses after a number only comment on it."""
        return evaluate(side, self.stated, loose=loose, asides=asides)

    def agree(self, left: Expression, right: Expression, *, loose: bool, asides: bool) -> bool:
        """Whether two neighbouring sides have one value, as far as their digits say; `loose` behind ≈."""
        one = alone(left, loose=loose) or self.value(left, asides, loose=loose)
        other = alone(right, loose=loose) or self.value(right, asides, loose=loose)
        if one.meets(other):
            return True
        formula = loose and isinstance(left, Number) and isinstance(right, Operation)
        if formula and abs(one.exact - other.exact) <= LITTLE * abs(one.exact):
            return True  # "7,087,872 ≈ 12 × 768²": near, and said to be no more
        ends, begins = _last_addend(left), _first_addend(right)
        if ends is left and begins is right:
            return False
        # "a + b = c + d = e", where c is a + b and e is c + d; "(q: 2 × 3 = 6 + k: 4 × 5 = 20)"
        links = [(ends, begins), (left, begins), (ends, right)]
        return any(self.value(end, asides).exact == self.value(begin, asides).exact for end, begin in links)


def _may_lack(side: Expression) -> bool:
    """Whether a unit may be left out in it: in a sum, and in a product with decimals; 12 × 768 × 12 is no number of millions."""
    if not isinstance(side, Operation):
        return False
    return side.symbols[0] in "+-" or any(isinstance(part, Number) and part.unit < 1 for part in side.parts)


def _symbolic(side: Expression) -> bool:
    """Whether a side has variables, and no number but small ones."""
    names = any(True for _ in names_in(side))
    return names and all(number.value < LEAST_REFERENCE for number in _numbers(side))


def _numbers(expression: Expression) -> Iterator[Number]:
    if isinstance(expression, Number):
        yield expression
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from _numbers(part)


def names_in(expression: Expression) -> Iterator[str]:
    """The variables of an expression."""
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from names_in(part)


def _first_addend(side: Expression) -> Expression:
    return side.parts[0] if isinstance(side, Operation) and side.symbols[0] == "+" else side


def _last_addend(side: Expression) -> Expression:
    return side.parts[-1] if isinstance(side, Operation) and side.symbols[-1] == "+" else side


def _has_aside(expression: Expression) -> bool:
    return isinstance(expression, Operation) and (
        "(" in expression.symbols or any(_has_aside(part) for part in expression.parts)
    )
