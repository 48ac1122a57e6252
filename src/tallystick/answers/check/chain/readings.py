"""Choose how a chain of equations is meant: parentheses, omitted units, rounding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from tallystick.answers.check.chain.binary import BINARY, binary_powers, has_letter, keeps_letter, powers_of_letter
from tallystick.answers.check.chain.formats import NEAR_BYTES, stored_in_bytes
from tallystick.answers.check.chain.forms import (
    are_results,
    below,
    divided,
    has_unit,
    in_unit,
    is_sum_of_decimals,
    may_lack,
    product,
    results_of,
    with_bias,
    without_first,
    without_note,
)
from tallystick.answers.check.chain.rounding import LITTLE, SCALED, WRITTEN, continues, is_cut
from tallystick.answers.check.chain.sides import (
    LEAST_REFERENCE,
    PERCENT,
    first_addend,
    first_factor,
    has_aside,
    is_share,
    last_addend,
    paired_parts,
    symbolic,
)
from tallystick.answers.check.claims import Claim
from tallystick.derivations.arithmetic import (
    Expression,
    Name,
    Number,
    Operation,
    Value,
    alone,
    evaluate,
    is_sum,
    scaled,
    ungrouped,
)
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import Side, Statement

NEAR_SUM = Fraction(1, 4)  # the same of a sum in an omitted unit and its wrong result
LEAST_FACTOR = 4  # digits of a factor that misquotes the side before it by one digit
LEAST_SLIP = 1000  # a shorter number is another one but for a digit by chance, in some unit
LEAST_SUM_SLIP = 100  # the same of a sum: "14 + 84 + 28 = 726 GB"

_BIAS = re.compile(
    r"(?:\+|\b(?:and|with|incl\w*|mit|avec|con|com))\s*bias|\u542b\u504f\u7f6e|\bbias included", re.IGNORECASE
)
LEAST_FAR = 100_000  # "4096 × 4096 … r = 16", "attention (4 matrices) = 0.65M × 4": a small number next to a large one is a size
SHIFTS = tuple(Fraction(10**power) for power in (3, 6, 9, 12))  # "= 18.4" in billions
LEAST_UNIT = 100  # 38.6M and 0.0004M have a letter; 0.5 and 12% have none
LONG = 3  # a longer word behind a number may only say what it counts: "312 batches"
_DECIMAL = tuple(10**power for power in (12, 9, 6, 3))
_UNITS = (*(2**power for power in (40, 30, 20, 10)), *_DECIMAL)
NEAR_LETTER = 12  # a number further from its product has another letter
NEAR_FRACTION = 10  # a larger numerator may be the result that a quotient goes on from
NEAR_UNIT = 5  # a one-digit number is within 1/5 of the number it rounds

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
        bare = [_with(side, without_note(side.expression)) for side in sides]
        in_units = _in_units(bare)
        first = [bare, [_with(side, ungrouped(side.expression)) for side in bare], *in_units]
        stored = list(stored_in_bytes(statement, bare))
        ways = [*first, *self._ways(statement, bare, before), self._shifted(bare), self._unrounded(bare)]
        ways += [*stored, *map(self._shifted, stored)]
        others = [one for one in ways if _differ(one, sides)]
        found = next((one for one in others if not self.wrong(one)), None)
        # "48 × 40.96 + 2 × 80.41 = 2.12B" is in millions, and cut.
        near = (one for one in (bare, *others) if self._nearly(one))
        added = in_units if is_sum_of_decimals(bare[0].expression) else ()
        summed = (one for one in added if self._nearly(one, within=NEAR_SUM))
        grouped = first[1]  # 128.256 × 4.096
        typed = (one for one in others if self._is_typed(one, LEAST_SUM_SLIP if one is grouped else LEAST_SLIP))
        named = len(stored) == 1  # the line names its format: "(fp16)"
        kept = (one for one in stored if named or self._nearly(one, within=NEAR_BYTES))
        found = found or next(near, None) or next(summed, None)
        if found is None and (found := next(typed, None)) is not None and self._is_typed(sides, LEAST_SLIP):
            return sides  # "10,223M ≈ 17.22B" has a digit wrong as it stands
        return found or next(kept, None) or self._in_letter(bare)

    def _in_letter(self, sides: Sides) -> Sides:
        """Return a chain without the divisor that the letter of its result means.

        Example: "16 × 2 × 2048 × 2048 / 1e9 ≈ 0.22B" has its billion twice.
        """
        *before, left, right = sides
        parts, number = divided(left.expression), right.expression
        if parts is None or not (isinstance(number, Number) and number.rounded):
            return sides
        value, scale = (self.value(part, asides=False).exact for part in parts)
        near = scale in SCALED and value / NEAR_LETTER < number.value < value * NEAR_LETTER
        return [*before, _with(left, parts[0]), right] if near else sides

    def _ways(self, statement: Statement, sides: Sides, before: Claim | None) -> Iterator[Sides]:
        """Yield other ways to read a chain: without a unit or a name, or with a bias."""
        first, last = sides[0], sides[-1].expression
        added = statement.label.startswith("+ ") or statement.clause.lstrip().startswith("+")
        if added and before is not None:
            goes_on = Operation(("+",), (Number(before.stated), first.expression))  # "a + b = c. + d = e"
            yield [_with(first, goes_on), *sides[1:]]
        if (results := results_of(sides)) is not None:
            yield [*sides[:-2], _with(sides[-2], results), sides[-1]]
        if symbolic(first.expression) and len(sides) > 2:
            yield sides[1:]  # the formula's variables may differ from its numbers
        if isinstance(last, Number) and last.rounded:
            if is_share(last):  # "(3.04 - 2.91) / 3.04 × 100 = 4.3%"
                yield [*sides[:-1], _with(sides[-1], Number(last.value / PERCENT, last.unit / PERCENT))]
            units = _DECIMAL if is_sum_of_decimals(first.expression) else _UNITS  # no 1,024 in "13.2 + 1.1 GB"
            yield from ([_with(side, in_unit(side, unit)) for side in sides] for unit in units)
        yield [_with(side, self._unnamed(side.expression)) for side in sides]
        yield [_with(side, below(side.expression)) for side in sides]
        if _BIAS.search(statement.label):
            yield from ([_with(first, both), *sides[1:]] for both in with_bias(first.expression))

    def _is_typed(self, sides: Sides, least: int) -> bool:
        """Return whether a chain is right but for one digit of its last number, `least` or more."""
        *before, left, right = sides
        number = right.expression
        least = LEAST_SUM_SLIP if is_sum(left.expression) else least
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
        one, other = self.exact(left, right, asides)
        return abs(one - other) <= within * abs(one)

    def exact(self, left: Side, right: Side, asides: bool) -> tuple[Fraction, Fraction]:
        """Return the values of two sides, without the bounds of their rounding."""
        return self.value(left.expression, asides).exact, self.value(right.expression, asides).exact

    def _unrounded(self, sides: Sides) -> Sides:
        """Let each side go on from the fraction that its whole number rounds.

        Example: "0.3 × 590,118,912 = 177,035,674 × 2 = 354,071,347".
        """
        found = [sides[0]]
        for side in sides[1:]:
            factor, product = first_factor(side.expression), side.expression
            if isinstance(product, Operation) and isinstance(factor, Number) and factor.unit == 1:
                before = self.value(found[-1].expression, asides=False).exact
                if before.denominator > 1 and abs(factor.value - before) < 1:
                    product = product._replace(parts=(Number(before), *product.parts[1:]))
            found.append(_with(side, product))
        return found

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
        units = SHIFTS if is_sum_of_decimals(before.expression) else _units(side)
        for unit in units:
            if abs(lacks - unit) * NEAR_UNIT > unit:
                continue
            mixed = unit in BINARY and unit not in powers_of_letter(number)  # MB of 1,000 × 1,024 bytes
            if (mixed and not has_letter(before)) or (unit in BINARY and keeps_letter(before, number)):
                continue  # "= 8.4 GB" of 8,589,934,592 bytes
            other = _with(side, Number(number.value * unit, number.unit * unit, rounded=True))
            if self._fits(before, other, cut=not mixed):
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
        for side in sides:  # much faster than `any`
            if has_aside(side.expression):
                break
        else:
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
        computed = left.__class__ is right.__class__ is Operation
        met = first.meets(second)
        if met or (computed and are_results(left, right)):
            return met or self._agree_by_parts(one, other, asides)
        if is_cut(one, other, first, second):
            return True
        if computed and (continues(left, right) or self._agree_by_parts(one, other, asides)):
            return True
        # Tested here rather than by what is called, as this is asked most often.
        multiplied = right.__class__ is Operation and right.symbols[0] in "*/"
        if multiplied and not is_fraction(right):  # "a × b = c × d = e" with c = a × b, "= 32MB (each) × 16"
            factor = first_factor(right)
            meant = alone(factor, loose=loose) or self.value(factor, asides)
            if first.meets(meant) or is_cut(one, other._replace(expression=factor), first, meant):
                return True
        ends = left.__class__ is Operation and left.symbols[-1] == "+"
        begins = right.__class__ is Operation and right.symbols[0] in "+-"
        return (ends or begins) and self._agree_by_addends(one, other, (first, second), asides)

    def _agree_by_addends(self, one: Side, other: Side, values: tuple[Value, Value], asides: bool) -> bool:
        """Return whether a sum begins with the side before it, or ends in the side after it.

        Examples: "a + b = c + d = e" with c = a + b and e = c + d;
        "(q: 2 × 3 = 6 + k: 4 × 5 = 20)".
        """
        left, right, loose = one.expression, other.expression, other.loose
        ends, begins = last_addend(left), first_addend(right)
        if (ends is left and begins is right) or self._is_parallel(left, right, asides):
            return False
        first, second = values
        last = alone(ends, loose=loose) or self.value(ends, asides)
        start = alone(begins, loose=loose) or self.value(begins, asides)
        rest = without_first(left)
        behind = last if rest is None else self.value(rest, asides, loose=loose)
        if first.meets(start) or (begins is not right and (last.meets(start) or behind.meets(start))):
            return True  # "2 × 3 + 3 = 9 + 3 × 4 + 4 = 16 + …" adds the next product and its bias
        if isinstance(first_addend(left), Number) and last.meets(second):
            return True  # but "2.36M (768 × 3072 + 3072 × 768)" is their sum
        added = last_addend(right)
        if isinstance(added, Number) and added is not right and first.meets(alone(added, loose=loose) or second):
            return True  # "fc1 … + fc2 → 1024 × 256 + 256 = 263,168 + 262,400"
        return rest is not None and behind.meets(second)  # "a × b = c + d + e = f" with f = d + e

    def _agree_by_parts(self, one: Side, other: Side, asides: bool) -> bool:
        """Return whether two sums or products have equal parts, perhaps cut: 768 × 256 = 196K."""
        parts = paired_parts(one.expression, other.expression)
        return bool(parts) and all(self._is_part(Side(mine), Side(its, other.loose), asides) for mine, its in parts)

    def _is_part(self, one: Side, other: Side, asides: bool) -> bool:
        """Return whether a part is another, and no "c × d" that goes on from it."""
        factor = first_factor(other.expression)
        number = factor is not other.expression and isinstance(factor, Number) and factor.rounded
        met = self.value(one.expression, asides).meets(self.value(other.expression, asides))
        return (met or not number) and self._agree(one, other, asides=asides)

    def meant_by(self, left: Side, right: Side, *, asides: bool) -> Side:
        """Return the first factor of a product that goes on from what it should be, or the side.

        Example: "384 × 384 + 384 × 128 ≈ 195K × 10 = 1.95M" has 195K for the sum.
        """
        factor = first_factor(right.expression)
        number = factor if isinstance(factor, Number) and factor is not right.expression else None
        if number is None or isinstance(left.expression, Number):
            return right
        near = number.rounded and self.are_near(left, Side(number), asides=asides, within=NEAR_SUM)
        typed = is_typed_for(number, self.value(left.expression, asides).exact, least=LEAST_FACTOR)
        return right._replace(expression=number, sure=right.sure or typed) if near or typed else right

    def _is_parallel(self, left: Expression, right: Expression, asides: bool) -> bool:
        """Return whether a sum has the results of the addends of another, but for one of them.

        Examples: "(2 × 3 + 3) + (3 × 2 + 2) = 17 + 8", "2 × 3 + 3 × 2 = 12 + 12".
        """
        pairs = paired_parts(left, right) if is_sum(left) else []
        values = [(self.value(one, asides).exact, self.value(other, asides).exact) for one, other in pairs]
        equal = [one == other for one, other in values]
        computed = all(isinstance(one, Operation) for one, _ in pairs[1:])
        same = len(pairs) > 1 and computed and values[1:] == values[:-1]
        return same or (equal.count(False) == 1 and (len(pairs) > 2 or (computed and equal[1])))


def is_fraction(side: Expression) -> bool:
    """Return whether a side is a quotient of two small whole numbers: "1/4"."""
    if not (isinstance(side, Operation) and side.symbols == ("/",)):
        return False
    return all(isinstance(part, Number) and part.unit == 1 and part.value < NEAR_FRACTION for part in side.parts)


def _in_units(sides: Sides) -> list[Sides]:
    """Return a chain with its numbers in millions, and so on, if its last number has a letter."""
    sides = [_with(side, without_note(side.expression, rounded=True)) for side in sides]
    last = sides[-1].expression
    if not (isinstance(last, Number) and last.rounded and last.value >= LEAST_REFERENCE):
        return []
    lack = [may_lack(one.expression) for one in sides]
    if not any(lack):
        return []
    bare = [one and not has_unit(side.expression) for one, side in zip(lack, sides, strict=True)]
    ways = [lack] if bare == lack else [lack, bare]  # "26.54M + 2 × 2,880 = 26.54 + 0.006" lacks it in one sum
    return [
        [_with(side, scaled(side.expression, scale)) if one else side for side, one in zip(sides, lacking, strict=True)]
        for lacking in ways
        for scale in WRITTEN
    ]


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
    return side if expression is side.expression else side._replace(expression=expression)
