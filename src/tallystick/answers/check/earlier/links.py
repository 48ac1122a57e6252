"""Compare two neighbouring sides, with what earlier lines say of their rounded numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from tallystick.answers.check.chain.forms import without_first
from tallystick.answers.check.chain.readings import Readings, Sides
from tallystick.answers.check.chain.rounding import ROUND, is_cut
from tallystick.answers.check.chain.sides import first_addend, first_factor, last_addend, paired_parts
from tallystick.answers.check.claims import LEAST_COUNT, is_whole
from tallystick.answers.check.earlier.references import References
from tallystick.derivations.arithmetic import Expression, Number, Operation, alone, evaluate, exactly, is_sum
from tallystick.derivations.statements import Side

CARRIES = "goes on from a wrong product above it"


class Links:
    """Tells whether the sides of a chain agree."""

    def __init__(self, readings: Readings, references: References) -> None:
        self.readings = readings
        self.references = references
        self.wrong: dict[tuple[Fraction, ...], Fraction] = {}  # results of products, by their factors

    def pairs(self, sides: Sides, asides: bool) -> list[tuple[Side, Side, bool]]:
        """Return the neighbouring sides of a chain as they are compared, and whether they agree.

        A rounded number may round the right result next to a wrong one: "3 × 4096 × 14336 =
        170,160,768 ≈ 0.176B". So may the side behind a wrong sum be the value of the side before
        it: "12 × 100 + 5 = 1300 + 5 = 1205". A product may go on from what its first factor should
        be: "2 × 64 × 64 = 8,152 × 8 = 65,536".
        """
        found = [self._pair(left, right, asides) for left, right in pairwise(sides)]
        if not found[1:]:
            return found
        found = self._running(found, asides)
        for number, ((left, _, met), (middle, right, agree)) in enumerate(pairwise(found), 1):
            ends = _is_rounded(right) or _adds(middle.expression)
            if met or agree:
                continue
            meant = _goes_on_from(left, middle)
            if ends and self._agree(left, right, asides):
                found[number] = left, right, True
            elif meant is not None and self._agree(meant, right, asides):
                found[number] = meant, right, True
        return [(self._ended(left, right, asides) if agree else left, right, agree) for left, right, agree in found]

    def _running(self, found: list[tuple[Side, Side, bool]], asides: bool) -> list[tuple[Side, Side, bool]]:
        """Take a sum that states the value of its last addend on the way, and goes on from there.

        Examples: "38.6M + 12 × 7.09M = 85.1M + 0.8M = 124.5M", and over lines "38.6M",
        "+ 1024 × 768 = 0.8M", "= 39.4M", "+ 12 × 7.09M = 85.1M", "= 124.5M".
        """
        sums, last, whole = None, None, None
        for number, (left, right, agree) in enumerate(found):
            begun = first_addend(right.expression)
            if not agree and whole is not None and isinstance(left.expression, Number):
                met = self.readings.value(whole.expression, asides).meets(self.readings.value(begun, asides))
                found[number] = (whole, right._replace(expression=begun), True) if met else found[number]
            whole = left if is_sum(left.expression) else whole
            value = self.readings.value(left.expression, asides)
            begun = first_addend(left.expression)
            if sums is not None and last is not None and is_sum(left.expression):
                goes_on = self.readings.agree(last, left._replace(expression=begun), asides=asides)
                value = sums.plus(value).less(self.readings.value(begun, asides)) if goes_on else value
                stated = alone(right.expression, loose=right.loose)
                if goes_on and not agree and stated is not None and value.meets(stated):
                    found[number] = left, right, True
            sums = value
            last = left._replace(expression=last_addend(left.expression)) if is_sum(left.expression) else None
        return found

    def _pair(self, left: Side, right: Side, asides: bool) -> tuple[Side, Side, bool]:
        """Return two neighbouring sides as they are compared, and whether they agree."""
        if not self._agree(left, right, asides):
            converts = right.unit == "bytes" and left.unit != "bytes"  # "576 × 576 = 1.27 MB × 30 = 38 MB"
            begun = first_factor(right.expression) if converts else right.expression
            meant = right._replace(expression=begun) if isinstance(begun, Number) else right
            return left, self.readings.meant_by(left, meant, asides=asides), False
        return left, self._begun(left, right, asides), True

    def record(self, product: Expression, stated: Fraction) -> None:
        """Record the wrong result of a product: a later sum may hold it."""
        if factors := _factors(product):
            self.wrong[factors] = stated

    def carries(self, left: Side, right: Side, asides: bool) -> str:
        """Return why a sum is not judged, or "": it has the wrong result of a product above it."""
        sum_, number = left.expression, alone(right.expression, loose=right.loose)
        if not (self.wrong and is_sum(sum_) and number is not None):
            return ""
        found = [self.wrong.get(_factors(part)) for part in sum_.parts]
        values = [
            self.readings.value(part, asides).exact if wrong is None else wrong
            for part, wrong in zip(sum_.parts, found, strict=True)
        ]
        return CARRIES if any(found) and number.meets(exactly(sum(values, Fraction(0)))) else ""

    def _begun(self, left: Side, right: Side, asides: bool) -> Side:
        """Return the part of a side that is the side before it, or else the side.

        Examples: "32 × 218M = 6.98B + 1.24B = 8.22B", "4 × 768² = 2.36M × 12 = 28.3M".
        """
        whole = right.expression
        if not isinstance(whole, Operation) or self.readings.value(left.expression, asides).meets(
            self.readings.value(whole, asides)
        ):
            return right
        parts = (
            part for part in (first_addend(whole), first_factor(whole), last_addend(whole)) if isinstance(part, Number)
        )
        begun = (Side(part, right.loose) for part in parts)
        return next((one for one in begun if self.readings.agree(left, one, asides=asides)), right)

    def _ended(self, left: Side, right: Side, asides: bool) -> Side:
        """Return the last addends of a sum if they are the side behind it, or else the side.

        Example: "3 × 768 × 768 = 1,769,472 + 768 × 768 = 589,824".
        """
        last = last_addend(left.expression)
        if last is left.expression:
            return left
        one, other = (self.readings.value(side.expression, asides) for side in (left, right))
        if one.meets(other):
            return left
        rest = without_first(left.expression)
        ends = [part for part in (last, rest) if part is not None and self.readings.value(part, asides).meets(other)]
        return left._replace(expression=ends[0]) if ends else left

    def apart(self, left: Side, right: Side, asides: bool) -> tuple[Expression, Expression]:
        """Return the only pair of parts in which two sums or products differ, else both sides.

        In "a × b + c × d = 38.6M + 81.3M" this may be the second pair. Of two equal ones it is the
        first.
        """
        differ = [(one, other) for one, other in _parts(left, right) if not self._agree(one, other, asides)]
        same = len({self.readings.exact(*pair, asides) for pair in differ}) == 1
        one, other = differ[0] if same else (left, right)
        return one.expression, other.expression

    def _agree(self, left: Side, right: Side, asides: bool) -> bool:
        return self.readings.agree(left, right, asides=asides) and not (
            (self.references.any_rounded or _has_rounded(left.expression)) and self._misrounds(left, right, asides)
        )

    def _misrounds(self, left: Side, right: Side, asides: bool, *, part: bool = False) -> bool:
        """Return whether a number rounds neither what a line writes nor what that stands for.

        "12 × 7.08M = 85.02M" goes on neither from 7,080,000 nor from 7,077,888, which a line above
        rounds.
        """
        if parts := _parts(left, right):
            return any(self._misrounds(*pair, asides, part=True) for pair in parts)
        stated = alone(right.expression, loose=right.loose)
        if stated is None or not isinstance(left.expression, Operation) or "/" in left.expression.symbols:
            return False  # "3.93M / (2 × 768) = 2560" is a width near it
        wide = self.readings.value(left.expression, asides)
        value = evaluate(left.expression, self.readings.stated, asides=asides, replaced=self.references.unrounded)
        if (value.low, value.high) == (wide.low, wide.high) or not (part or wide.meets(stated)):
            return False  # no line above rounds one of its numbers, or they agree in another way
        if is_whole(right.expression) and stated.exact >= LEAST_COUNT and stated.exact % ROUND:
            # "67M + 135M = 202,374,144" is written to its last digit.
            exact = evaluate(left.expression, self.readings.stated, asides=asides, replaced=self.references.exact)
            return exact.is_exact and stated.exact not in (exact.exact, value.exact)
        ends = (value, exactly(value.low), exactly(value.high))  # "32 × 135.3M = 4,328M" of 4,328,521,728
        return not (value.meets(stated) or any(is_cut(left, right, one, stated) for one in ends))


def _factors(product: Expression) -> tuple[Fraction, ...]:
    """Return the factors of a product of numbers, in order of their size, or ()."""
    if not (isinstance(product, Operation) and set(product.symbols) == {"*"}):
        return ()
    factors = [part.value for part in product.parts if isinstance(part, Number)]
    return tuple(sorted(factors)) if len(factors) == len(product.parts) else ()


def _goes_on_from(left: Side, product: Side) -> Side | None:
    """Return a product with the side before it in place of its first factor, or None."""
    whole = product.expression
    if not (isinstance(whole, Operation) and set(whole.symbols) == {"*"} and isinstance(whole.parts[0], Number)):
        return None
    return product._replace(expression=whole._replace(parts=(left.expression, *whole.parts[1:])))


def _adds(side: Expression) -> bool:
    return isinstance(side, Operation) and set(side.symbols) <= {"+", "-"}


def _is_rounded(side: Side) -> bool:
    return isinstance(side.expression, Number) and side.expression.rounded


def _has_rounded(side: Expression) -> bool:
    """Return whether a part of a sum or product is rounded. Asked often, it calls nothing."""
    if side.__class__ is Operation:
        for part in side.parts:
            if part.__class__ is Number and part.rounded:
                return True
    return False


def _parts(left: Side, right: Side) -> list[tuple[Side, Side]]:
    """Return the parts of two sums or products of one shape, in pairs, or []."""
    pairs = paired_parts(left.expression, right.expression)
    return [(Side(mine), Side(its, right.loose)) for mine, its in pairs]
