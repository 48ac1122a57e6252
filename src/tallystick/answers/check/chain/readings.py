"""Choose how a chain of equations is meant: parentheses, omitted units, rounding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from tallystick.answers.check.chain.forms import (
    are_results,
    below,
    in_unit,
    is_sum_of_decimals,
    may_lack,
    product,
    with_bias,
    without_first,
)
from tallystick.answers.check.chain.mistyped import LEAST_EXACT, LEAST_SHORT, has_slip
from tallystick.answers.check.chain.rounding import LITTLE, SCALED, continues, is_cut
from tallystick.answers.check.chain.sides import (
    LEAST_REFERENCE,
    first_addend,
    first_factor,
    has_aside,
    last_addend,
    names_in,
    numbers_in,
    symbolic,
)
from tallystick.answers.check.chain.unlike import binary_powers, unlike
from tallystick.answers.check.claims import Claim
from tallystick.derivations.arithmetic import (
    Expression,
    Name,
    Number,
    Operation,
    Value,
    alone,
    evaluate,
    exactly,
    scaled,
    ungrouped,
)
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Side, Statement

NEAR_SUM = Fraction(1, 4)  # the same of a sum in an omitted unit and its wrong result
LEAST_SLIP = 1000  # a shorter number is another one but for a digit by chance, in some unit
LEAST_SUM_SLIP = 100  # the same of a sum: "14 + 84 + 28 = 726 GB"
ABOUT = Fraction(1, 1000)  # the same of a product of decimals after ≈

_BIAS = re.compile(
    r"(?:\+|\b(?:and|with|incl\w*|mit|avec|con|com))\s*bias|\u542b\u504f\u7f6e|\bbias included", re.IGNORECASE
)
FAR = 12  # sides with a larger ratio are not meant as equal, unless a factor is omitted
FAR_APART = 1000  # the same for products of numbers alone: "12 layers × 768 dims ≈ 117M parameters" describes a model
LEAST_FAR = 100_000  # "4096 × 4096 … r = 16", "attention (4 matrices) = 0.65M × 4": a small number next to a large one is a size
SHIFTS = tuple(Fraction(10**power) for power in (3, 6, 9, 12))  # "= 18.4" in billions
LEAST_UNIT = 100  # 38.6M and 0.0004M have a letter; 0.5 and 12% have none
LONG = 3  # a longer word behind a number may only say what it counts: "312 batches"
ABOUT_RIGHT = "is about right, as its sign says"
TOO_FAR = "has sides too far apart to be meant as equal"
PERCENT = Fraction(1, 100)
_UNITS = (*(2**power for power in (40, 30, 20, 10)), *(10**power for power in (12, 9, 6, 3)))
NEAR_FACTOR = 20  # 33,554,432 is within a twentieth of "32MB", which goes on as a factor
NEAR_UNIT = 5  # a one-digit number is within 1/5 of the number it rounds
BINARY = tuple(Fraction(1024, 1000) ** power for power in (1, 2, 3))  # 384 MB that means MiB

FRACTIONS = tuple(1 / shift for shift in SHIFTS[:3])  # of a second: ms, µs, ns

Sides: TypeAlias = "Sequence[Side]"


class Readings:
    """Interpretations of chains, given the current values of the variables."""

    def __init__(self, stated: Mapping[str, Value]) -> None:
        self.stated = stated
        # Keyed by the id of an expression; the expression is kept so that the id stays valid.
        self.values: dict[tuple[int, bool, bool], tuple[Expression, Value]] = {}
        self.agreed: dict[tuple[int, int, bool, bool], tuple[Side, Side, bool]] = {}  # the same for two sides

    def forget(self) -> None:
        """Clear cached values: for the next statement, or for other values of the variables."""
        self.values.clear()
        self.agreed.clear()

    def wrong(self, sides: Sides) -> bool:
        """Return whether a link of a chain is wrong under the best reading of parentheses."""
        asides = self.asides(sides)
        return not all(self.agree(left, right, asides=asides) for left, right in pairwise(sides))

    def meant(self, statement: Statement, sides: Sides, before: Claim | None) -> Sides:
        """Return the sides as they are meant, if they are wrong as written.

        Units may be omitted: "38.6 + 85.1 = 123.7M" is in millions. 12.288 may mean 12,288. If no
        reading makes the chain right, return the sides unchanged.

        Args:
            statement: the statement that holds the chain.
            sides: its sides that have a value.
            before: the claim of the previous statement, which "+ d = e" continues.
        """
        if len(sides) < 2 or not self.wrong(sides):
            return sides
        last = sides[-1].expression
        others: list[Sides] = [[_with(side, ungrouped(side.expression)) for side in sides]]
        in_units: list[Sides] = []
        if isinstance(last, Number) and last.rounded and last.value >= LEAST_REFERENCE:
            for scale in SCALED:
                lacking = (
                    scaled(one.expression, scale) if may_lack(one.expression) else one.expression for one in sides
                )
                in_units.append([_with(one, expression) for one, expression in zip(sides, lacking, strict=True)])
        others += in_units
        if statement.clause.lstrip().startswith("+") and before is not None:
            goes_on = Operation(("+",), (Number(before.stated), sides[0].expression))  # "a + b = c. + d = e"
            others.append([_with(sides[0], goes_on), *sides[1:]])
        if symbolic(sides[0].expression) and len(sides) > 2:
            others.append(sides[1:])  # the formula's variables may differ from its numbers
        if isinstance(last, Number) and last.rounded and last.unit <= PERCENT:  # "(3.04 - 2.91) / 3.04 × 100 = 4.3%"
            others.append([*sides[:-1], _with(sides[-1], Number(last.value / PERCENT, last.unit / PERCENT))])
        if isinstance(last, Number) and last.rounded:
            others += [[_with(side, in_unit(side, unit)) for side in sides] for unit in _UNITS]
        unnamed = [self._unnamed(side.expression) for side in sides]
        if any(one is not side.expression for one, side in zip(unnamed, sides, strict=True)):
            others.append([_with(side, one) for one, side in zip(unnamed, sides, strict=True)])
        if any(isinstance(side.expression, Operation) and "/" in side.expression.symbols for side in sides):
            others.append([_with(side, below(side.expression)) for side in sides])
        if _BIAS.search(statement.label):
            others += [[_with(sides[0], both), *sides[1:]] for both in with_bias(sides[0].expression)]
        others.append(self._shifted(sides))
        others = [one for one in others if _differ(one, sides)]
        found = next((one for one in others if not self.wrong(one)), None)
        # "48 × 40.96 + 2 × 80.41 = 2.12B" is in millions, and cut.
        near = (one for one in (sides, *others) if self._nearly(one))
        added = in_units if is_sum_of_decimals(sides[0].expression) else ()
        summed = (one for one in added if self._nearly(one, within=NEAR_SUM))
        typed = (one for one in others if self._is_typed(one))
        return found or next(near, None) or next(summed, None) or next(typed, sides)

    def _is_typed(self, sides: Sides) -> bool:
        """Return whether a chain is right but for one digit of its last number."""
        *before, left, right = sides
        number = right.expression
        summed = isinstance(left.expression, Operation) and set(left.expression.symbols) == {"+"}
        least = LEAST_SUM_SLIP if summed else LEAST_SLIP
        if not isinstance(number, Number) or number.value < least * number.unit or self.wrong([*before, left]):
            return False
        return is_typed_for(number, self.value(left.expression, asides=False).exact)

    def _unnamed(self, side: Expression) -> Expression:
        """Return a product without names behind their own values: "30,522 vocab_size × 768"."""
        if not (isinstance(side, Operation) and set(side.symbols) == {"*"}):
            return side
        parts = side.parts
        named = {
            place
            for place, (before, part) in enumerate(pairwise(parts), 1)
            if isinstance(part, Name)
            and isinstance(before, Number)
            and (self.stated[part.name].exact == before.value or (len(part.name) > LONG and part.name.isalpha()))
        }
        return product(tuple(part for place, part in enumerate(parts) if place not in named)) if named else side

    def _nearly(self, sides: Sides, within: Fraction = LITTLE) -> bool:
        """Return whether neighbouring sides differ by little, or not at all."""
        return all(self.are_near(*pair, asides=False, within=within) for pair in pairwise(sides))

    def are_near(self, left: Side, right: Side, *, asides: bool, within: Fraction = LITTLE) -> bool:
        """Return whether two sides differ by little."""
        one, other = (self.value(side.expression, asides).exact for side in (left, right))
        return abs(one - other) <= within * abs(one)

    def _shifted(self, sides: Sides) -> Sides:
        """Add the omitted units to the numbers of a chain.

        Examples: "= 15.7 G FLOPs", "= 384 MB" for MiB.
        """
        found = [sides[0]]
        for side in sides[1:]:
            found.append(self._shift(found[-1], side))
        return found

    def _shift(self, before: Side, side: Side) -> Side:
        """Return a number in the unit that it omits, if it then is the side before it."""
        number = side.expression
        if not isinstance(number, Number) or number.value <= 0:
            return side
        lacks = self.value(before.expression, asides=False).exact / number.value  # approximately the omitted unit
        units = _units(side)
        for unit in units:
            other = _with(side, Number(number.value * unit, number.unit * unit, rounded=True))
            mixed = unit in BINARY and unit != units[0]  # MB of 1,000 × 1,024 bytes: its digits are not cut too
            if abs(lacks - unit) * NEAR_UNIT <= unit and self._fits(before, other, cut=not mixed):
                return other
        return side

    def _fits(self, left: Side, right: Side, *, cut: bool) -> bool:
        """Return whether a number in another unit is the side before it, perhaps cut."""
        if cut:
            return self.agree(left, right, asides=False)
        stated = alone(right.expression, loose=right.loose)
        return stated is not None and self.value(left.expression, asides=False, loose=right.loose).meets(stated)

    def asides(self, sides: Sides) -> bool:
        """Return whether parentheses after a number only comment on it.

        The reading with fewer wrong links, then with the smaller differences, is chosen.
        """
        if not any(has_aside(side.expression) for side in sides):
            return False

        def wrong(asides: bool) -> tuple[int, Fraction]:
            pairs = list(pairwise(sides))
            apart = [
                abs(self.value(left.expression, asides).exact - self.value(right.expression, asides).exact)
                for left, right in pairs
            ]
            agree = [self.agree(left, right, asides=asides) for left, right in pairs]
            return agree.count(False), sum(apart, Fraction(0))

        return wrong(True) <= wrong(False)

    def value(self, side: Expression, asides: bool, *, loose: bool = False) -> Value:
        """Return the value of a side, from the cache if possible.

        Args:
            side: an expression that has a value.
            asides: treat parentheses after a number as comments.
            loose: treat decimals as rounded.
        """
        key = id(side), asides, loose
        if key not in self.values:
            self.values[key] = side, evaluate(side, self.stated, loose=loose, asides=asides)
        return self.values[key][1]

    def agree(self, one: Side, other: Side, *, asides: bool) -> bool:
        """Return whether two neighbouring sides are equal within the precision of their digits."""
        key = id(one.expression), id(other.expression), other.loose, asides
        if key not in self.agreed:
            self.agreed[key] = one, other, self._agree(one, other, asides=asides)
        return self.agreed[key][2]

    def _agree(self, one: Side, other: Side, *, asides: bool) -> bool:
        left, right, loose = one.expression, other.expression, other.loose
        first = alone(left, loose=loose) or self.value(left, asides, loose=loose)
        second = alone(right, loose=loose) or self.value(right, asides, loose=loose)
        met = first.meets(second)
        if met or are_results(left, right):
            return met or self._agree_by_parts(one, other, asides)
        if is_cut(one, other, first, second) or continues(left, right) or self._agree_by_parts(one, other, asides):
            return True
        factor = first_factor(right)
        if factor is not right:  # "a × b = c × d = e" with c = a × b, "= 32MB (each) × 16"
            meant = alone(factor, loose=loose) or self.value(factor, asides)
            rough = isinstance(factor, Number) and factor.rounded
            if first.meets(meant) or (rough and abs(first.exact - meant.exact) * NEAR_FACTOR <= first.exact):
                return True
        ends, begins = last_addend(left), first_addend(right)
        if (ends is left and begins is right) or self._is_parallel(left, right, asides):
            return False
        # "a + b = c + d = e" with c = a + b and e = c + d; "(q: 2 × 3 = 6 + k: 4 × 5 = 20)"
        last = alone(ends, loose=loose) or self.value(ends, asides)
        start = alone(begins, loose=loose) or self.value(begins, asides)
        if last.meets(start) or first.meets(start) or last.meets(second):
            return True
        rest = without_first(left)  # "a × b = c + d + e = f" with f = d + e
        return rest is not None and self.value(rest, asides, loose=loose).meets(second)

    def _agree_by_parts(self, one: Side, other: Side, asides: bool) -> bool:
        """Return whether two sums or products have equal parts, perhaps cut: 768 × 256 = 196K."""
        left, right = one.expression, other.expression
        if not (isinstance(left, Operation) and isinstance(right, Operation) and left.symbols == right.symbols):
            return False
        parts = zip(left.parts, right.parts, strict=True)
        return all(self._agree(Side(mine), Side(its, other.loose), asides=asides) for mine, its in parts)

    def meant_by(self, left: Side, right: Side, *, asides: bool) -> Side:
        """Return the first factor of a product that goes on from what it should be, or the side.

        Example: "384 × 384 + 384 × 128 ≈ 195K × 10 = 1.95M" has 195K for the sum.
        """
        factor = first_factor(right.expression)
        number = factor if isinstance(factor, Number) and factor.rounded and factor is not right.expression else None
        if number is None or isinstance(left.expression, Number):
            return right
        near = self.are_near(left, Side(number), asides=asides, within=NEAR_SUM)
        return right._replace(expression=number) if near else right

    def _is_parallel(self, left: Expression, right: Expression, asides: bool) -> bool:
        """Return whether a sum has the results of the addends of another, but for one of them.

        Example: "(2 × 3 + 3) + (3 × 2 + 2) = 17 + 8".
        """
        if not (isinstance(left, Operation) and isinstance(right, Operation) and left.symbols == right.symbols):
            return False
        pairs = list(zip(left.parts, right.parts, strict=True))
        equal = [self.value(one, asides).exact == self.value(other, asides).exact for one, other in pairs]
        computed = all(isinstance(one, Operation) for one in left.parts[1:])
        return set(left.symbols) == {"+"} and equal.count(False) == 1 and (len(pairs) > 2 or (computed and equal[1]))

    def _has_wrong_unit(self, left: Expression, right: Side, asides: bool) -> bool:
        """Return whether a product has a number's digits, but not its letter: "= 34M" for 34B."""
        number = right.expression
        if not (
            isinstance(left, Operation) and isinstance(number, Number) and number.rounded and right.unit != "bytes"
        ):
            return False
        value, stated = self.value(left, asides), alone(number, loose=right.loose)
        shifts = (*SHIFTS, *(1 / shift for shift in SHIFTS))
        moved = (stated.times(exactly(shift)) for shift in shifts) if stated else ()
        return number.unit >= LEAST_UNIT and any(value.meets(one) for one in moved)

    def _sets(self, left: Expression, number: Fraction) -> bool:
        """Return whether a number is set right here, behind a line's number: "5 d_model = 768"."""
        if not (isinstance(left, Operation) and left.symbols == ("*",)):
            return False
        before, name = left.parts
        return isinstance(before, Number) and isinstance(name, Name) and self.stated[name.name].exact == number

    def _rounds(self, left: Side, right: Side, asides: bool) -> str:
        """Return why a number may be right after all: the decimals before it are rounded."""
        sides = (left.expression, right.expression)
        if isinstance(sides[0], Number) and isinstance(sides[1], Operation):
            left, right = right, left  # "d_ff = 2048 = 2.67 × d_model"
            sides = sides[::-1]
        if isinstance(sides[0], Number) or not any(one.is_decimal for side in sides for one in numbers_in(side)):
            return ""
        one, other = (self.value(side.expression, asides).exact for side in (left, right))
        if right.loose and abs(one - other) <= ABOUT * abs(one):
            return ABOUT_RIGHT  # "2^16 × 1.999 ≈ 131072"
        computed = self.value(left.expression, asides, loose=True)
        number = alone(right.expression, loose=right.loose) or self.value(right.expression, asides, loose=True)
        if computed.meets(number):
            return "is right if its decimals are rounded"  # "tanh(1) = 0.76, 30 × 0.76 = 22.9"
        return ""

    def doubt(self, left: Side, right: Side, *, asides: bool) -> str:
        """Return why two unequal sides are not judged, or "" if they are."""
        if not (left.sure and right.sure):
            values = [self.value(side.expression, asides) for side in (right, left)]
            # One wrong digit in six or more is a slip of typing, whatever the words say.
            least = LEAST_SHORT if right.unit == "parameters" else LEAST_EXACT  # "[64 x 4] = 257 parameters"
            computed = isinstance(right.expression, Number) and isinstance(left.expression, Operation)
            if computed and has_slip(*values, least=least):
                return ""
            return "has words or a function among its numbers"
        return self._far(left, right, asides) or self._rounds(left, right, asides)

    def _far(self, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not meant as equal, or "" if they are."""
        one, other = (self.value(side.expression, asides).exact for side in (left, right))
        if right.loose and symbolic(right.expression):
            parts = left.expression.parts if isinstance(left.expression, Operation) else ()
            if abs(one - other) <= LITTLE * abs(one) or right.expression in parts:
                return ABOUT_RIGHT  # "4 × n² + n ≈ 4 × n²"
        if isinstance(right.expression, Number) and self._sets(left.expression, other):
            return "sets a size, behind a number"
        low, high = sorted((abs(one), abs(other)))
        computed = isinstance(left.expression, Operation) and low >= LEAST_REFERENCE
        ratio = high / low if low else 0
        numbers = not any(True for _ in names_in(left.expression))
        why = unlike(left, right, (one, other))
        if not numbers and high < LEAST_REFERENCE and isinstance(left.expression, Operation):
            why = why or "relates sizes, and counts nothing"
        if why or (numbers and self._has_wrong_unit(left.expression, right, asides)):
            return why
        if not numbers or (high >= LEAST_FAR and not (computed and ratio <= FAR_APART)):
            factors = {number.value for side in (left, right) for number in numbers_in(side.expression)} | set(SHIFTS)
            left_out = any(abs(ratio - factor) <= LITTLE * ratio for factor in factors)
            if not 0 < ratio <= FAR and not left_out:
                return TOO_FAR
        return ""  # "92 × 4 × 4 = 32" holds only numbers


def _units(side: Side) -> Sequence[Fraction]:
    """Return the units that a number may omit, as factors; one with a letter omits none."""
    if side.unit == "seconds":
        return FRACTIONS
    number = side.expression
    if not isinstance(number, Number):
        return SHIFTS
    lettered = number.rounded and number.unit >= LEAST_UNIT
    return (*(BINARY[: binary_powers(number)][::-1] if side.unit == "bytes" else ()), *(() if lettered else SHIFTS))


def _differ(one: Sides, other: Sides) -> bool:
    """Return whether a reading changes a side."""
    return len(one) != len(other) or any(a.expression is not b.expression for a, b in zip(one, other, strict=True))


def _with(side: Side, expression: Expression) -> Side:
    return side._replace(expression=expression)
