"""Tell whether a number in a row may count something else than the product next to it."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations

from tallystick.answers.check.chain.mistyped import POWERS, by_power
from tallystick.answers.check.chain.readings import LEAST_FAR, Readings
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, has_names, numbers_in
from tallystick.answers.check.chain.unlike import TEN
from tallystick.answers.check.chain.variables import MOST_COUNTED
from tallystick.derivations.arithmetic import Expression, Number, Operation, alone, exactly
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import Derivation, Side, Statement

MULTIPLE = "states a multiple of its product, as of all layers"
APART = "has columns that may count different things"
MOST_ROWS = 12  # of a table, from one to another
LEAST_ROW = 100  # of a row, a smaller number is a count or a width
LEAST_ALIKE = 2  # digits of a number that is another but for one
_WHOLE = re.compile(r"(?<![\w.,])\d[\d,]*(?![\w.])")
NEAR_ROW = 10  # a mistyped digit changes a number at most by this factor
NEAR = Fraction(3, 2)  # sides this near are meant as equal

_RELATION = re.compile(r"[=≈]")


class Cells:
    """Reasons not to judge the two numbers of a row."""

    def __init__(self, readings: Readings, derivation: Derivation) -> None:
        self.readings = readings
        self.derivation = derivation

    def why(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why a row's product and number are not judged, or ""."""
        related = _RELATION.search(statement.plain)
        if ("|" in statement.plain or not related) and self._is_several(left, right, asides):
            return MULTIPLE
        row = statement.clause.lstrip().startswith("|") or ("|" in statement.clause and not related)
        columns = (row or not related) and (
            self._are_apart(left, right, asides, row=row)
            or _has_factor(left, right)
            or self._adds_bias(left, right, asides)
            or (row and self._adds_cell(statement, left, right, asides))
        )
        return APART if columns or (row and self._are_unproven(statement, left, right, asides)) else ""

    def _are_apart(self, left: Side, right: Side, asides: bool, *, row: bool) -> bool:
        """Return whether a row has a range, "30-50", or a number far from its product.

        Outside of a table only a small number is too far.
        """
        one, other = left.expression, right.expression
        if row and isinstance(one, Number) and isinstance(other, Number) and one.rounded and other.rounded:
            return True  # "| 36.58 GB | 33.52 GB |" before and after
        low, high = sorted(abs(self.readings.value(side, asides).exact) for side in (one, other))
        lettered = isinstance(other, Number) and other.rounded
        ranges = isinstance(left.expression, Operation) and set(left.expression.symbols) <= {"-", "/"}
        far = high > NEAR_ROW * low and (not lettered or right.unit not in ("", left.unit))
        sizes = (
            row
            and high < LEAST_REFERENCE
            and (high < LEAST_ROW or not is_one_slip(*(str(round(one)) for one in (low, high))))
        )
        return (ranges and low < LEAST_REFERENCE) or sizes or (far and (row or low < LEAST_REFERENCE))

    def _are_unproven(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row's number is far from its product, and no other row has its own.

        Example: "| 128 × 56 × 56 | 73,984 |" of a feature map and its parameters.
        """
        one, number = self.readings.exact(left, right, asides)
        low, high = sorted((abs(one), abs(number)))
        rounded = isinstance(right.expression, Number) and right.expression.rounded
        if rounded or high <= NEAR * low or _are_like(low, high, right.expression):
            return False
        near = self.derivation.within(statement.line - MOST_ROWS, statement.line + MOST_ROWS)
        rows = (self.derivation.statements[place] for place in near)
        return not any(self._equal(*row.sides) for row in rows if len(row.sides) == 2 and "|" in row.plain)

    def _equal(self, left: Side, right: Side) -> bool:
        """Return whether a product of numbers alone is the number next to it."""
        if has_names(left.expression) or not isinstance(left.expression, Operation):
            return False
        return self.readings.value(left.expression, asides=False).meets(
            self.readings.value(right.expression, asides=False)
        )

    def _adds_bias(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row's number is its matrix and a bias: "| (96 × 363) | 34,944 |"."""
        if not (isinstance(left.expression, Operation) and set(left.expression.symbols) == {"*"}):
            return False
        one, other = self.readings.exact(left, right, asides)
        return any(other - one == number.value > 1 for number in numbers_in(left.expression))

    def _adds_cell(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row's number adds another cell: "| 2 × 1024 | 1,024 | 3,072 |"."""
        one, other = self.readings.exact(left, right, asides)
        return other > one and other - one in {int(cell.replace(",", "")) for cell in _WHOLE.findall(statement.plain)}

    def _is_several(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row has the product of one layer and the number of several.

        Small sizes may be the other way round: "24×200 | 600" of one link and of a host.
        """
        one, some = self.readings.exact(left, right, asides)
        if 0 < some < one < LEAST_FAR and (one / some).denominator == 1:
            return True
        if one < LEAST_REFERENCE or some * 2 < one * 3 or some > MOST_COUNTED * one:
            return False
        times = round(some / one)
        number = alone(right.expression, loose=right.loose)
        return some == times * one or (
            times not in POWERS and number is not None and number.meets(exactly(times * one))
        )


def _are_like(low: Fraction, high: Fraction, number: Expression) -> bool:
    """Return whether two numbers far apart differ by a slip: in a digit, or in a power of ten."""
    typed = isinstance(number, Number) and any(
        is_typed_for(number, meant, least=LEAST_ALIKE) for meant in (low, high) if meant != number.value
    )
    return typed or by_power(low, high)


def _has_factor(left: Side, right: Side) -> bool:
    """Return whether a row's number is a factor of its product: "14336 | 2 × 14336".

    A power of ten in a column is a size too.
    """
    sides = left.expression, right.expression
    if isinstance(sides[0], Operation) and sides[0].symbols == ("^",) and sides[0].parts[0] == TEN:
        return True
    return any(
        isinstance(one, Operation) and "*" in one.symbols and other in one.parts for one, other in permutations(sides)
    )
