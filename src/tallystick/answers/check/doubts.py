"""Tell why two unequal sides of a statement are not judged: its columns, rates and distances."""

from __future__ import annotations

import re
from fractions import Fraction

from tallystick.answers.check.claims import measures
from tallystick.answers.check.mistyped import is_one_slip
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.readings import LEAST_REFERENCE, LITTLE, TOO_FAR, Readings, names_in
from tallystick.answers.check.unlike import TWO_NUMBERS
from tallystick.answers.check.variables import MOST_COUNTED
from tallystick.derivations.arithmetic import ASIDES, Name, Number, Operation
from tallystick.derivations.statements import Side, Statement

NEAR_ROW = 10  # a mistyped digit changes a number at most by this factor
NEAR = Fraction(3, 2)  # sides this near are meant as equal
POWERS = tuple(Fraction(10**power) for power in (1, 2, 3, 6, 9, 12))  # a zero or a letter too many

_RELATION = re.compile(r"[=≈]")
_MATHEMATICS = re.compile(r"\${1,2}[^\s$](?:[^$]*[^\s$])?\${1,2}(?!\d)|^\s*\${1,2}|\${1,2}\s*$")  # "$2 \times 3$"
_MONEY = re.compile(r"[$€£¥₩₽]\s?\d|\d\s?[€£₽₩元円]|\bUSD\b")
_RATE = re.compile(r"/\s?[^\W\d_]|[→@|]|\b(?:per|each)\b[^=≈]*[=≈]")  # "59 MB/layer", a column's end


class Doubts:
    """Reasons not to judge two sides, given how their statement is written."""

    def __init__(self, readings: Readings, quantities: Quantities | None) -> None:
        self.readings = readings
        self.quantities = quantities

    def why(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not judged, or "" if they are."""
        if isinstance(left.expression, Operation) and left.expression.symbols == ("/",):
            if measures(statement):
                return "divides bytes or operations: their units are not followed"
            if _is_priced(statement):
                return "divides prices: their units are not followed"
        if "|" in statement.plain and self._is_several(left, right, asides):
            return "states a multiple of its product, as of all layers"
        related = _RELATION.search(statement.plain)
        row = statement.clause.lstrip().startswith("|") or ("|" in statement.clause and not related)
        if (row or not related) and self._are_apart(left, right, asides, row=row):
            return "has columns that may count different things"
        why = self.readings.doubt(left, right, asides=asides)
        if why == TWO_NUMBERS and self._has_one(left, right, asides):
            return ""
        return why or self._far(statement, left, right, asides)

    def _far(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why sides far apart are not judged: no slip explains them, and more is written.

        A slip changes a digit, a zero or a letter, or leaves the sides near to each other. Only a
        product of numbers with its result, and nothing else, is judged however far they are.
        """
        one, other = (self.readings.value(side.expression, asides).exact for side in (left, right))
        low, high = sorted((abs(one), abs(other)))
        if high < NEAR * low or any(abs(high - power * low) <= 2 * LITTLE * high for power in POWERS):
            return ""
        number = right.expression
        if isinstance(number, Operation) and number.symbols[0] in ASIDES:
            number = number.parts[0]  # "124.4M (1億2400万)"
        if isinstance(number, Number) and _is_typed(number, one):
            return ""
        if isinstance(left.expression, Name):
            return ""  # "n_layer = 24" of a model with 12
        named = any(True for side in (left, right) for _ in names_in(side.expression))
        lone = isinstance(left.expression, Number) or left.expression.symbols[0] in ASIDES
        row = statement.clause.lstrip().startswith("|")
        if named or lone or (not row and _RATE.search(statement.clause)) or _is_priced(statement):
            return TOO_FAR
        return ""

    def _has_one(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether the model has a quantity with the number of a side, "6 = 4" of a norm."""
        values = (self.readings.value(side.expression, asides).exact for side in (left, right))
        return self.quantities is not None and any(self.quantities.of(value) for value in values)

    def _are_apart(self, left: Side, right: Side, asides: bool, *, row: bool) -> bool:
        """Return whether a row has a range, "30-50", or a number far from its product.

        Outside of a table only a small number is too far.
        """
        low, high = sorted(abs(self.readings.value(side.expression, asides).exact) for side in (left, right))
        lettered = isinstance(right.expression, Number) and right.expression.rounded
        ranges = isinstance(left.expression, Operation) and set(left.expression.symbols) <= {"-", "/"}
        far = high > NEAR_ROW * low and (not lettered or right.unit not in ("", left.unit))
        sizes = (
            row
            and high < LEAST_REFERENCE
            and (high < NEAR_ROW or not is_one_slip(*(str(round(one)) for one in (low, high))))
        )
        return (ranges and low < LEAST_REFERENCE) or sizes or (far and (row or low < LEAST_REFERENCE))

    def _is_several(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row has the product of one layer and the number of several."""
        one, some = (self.readings.value(side.expression, asides).exact for side in (left, right))
        return one >= LEAST_REFERENCE and 1 < some / one <= MOST_COUNTED and (some / one).denominator == 1


def _is_typed(number: Number, meant: Fraction) -> bool:
    """Return whether a number is another one but for a slip of typing, as it is rounded."""
    return is_one_slip(*(str(round(value / number.unit)) for value in (number.value, meant)))


def _is_priced(statement: Statement) -> bool:
    """Return whether a statement is about money; $ may also enclose mathematics."""
    return _MONEY.search(_MATHEMATICS.sub(" ", statement.text)) is not None
