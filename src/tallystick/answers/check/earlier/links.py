"""Compare two neighbouring sides, with what earlier lines say of their rounded numbers."""

from __future__ import annotations

from tallystick.answers.check.chain.readings import Readings
from tallystick.answers.check.chain.rounding import is_cut
from tallystick.answers.check.earlier.references import References
from tallystick.derivations.arithmetic import Expression, Operation, alone, evaluate
from tallystick.derivations.statements import Side


class Links:
    """Tells whether the sides of a chain agree."""

    def __init__(self, readings: Readings, references: References) -> None:
        self.readings = readings
        self.references = references

    def pair(self, left: Side, right: Side, asides: bool) -> tuple[Side, Side, bool]:
        """Return two neighbouring sides as they are compared, and whether they agree."""
        agree = self._agree(left, right, asides)
        return left, right if agree else self.readings.meant_by(left, right, asides=asides), agree

    def apart(self, left: Side, right: Side, asides: bool) -> tuple[Expression, Expression]:
        """Return the only pair of parts in which two sums or products differ, else both sides.

        In "a × b + c × d = 38.6M + 81.3M" this may be the second pair.
        """
        differ = [(one, other) for one, other in _parts(left, right) if not self._agree(one, other, asides)]
        one, other = differ[0] if len(differ) == 1 else (left, right)
        return one.expression, other.expression

    def _agree(self, left: Side, right: Side, asides: bool) -> bool:
        return self.readings.agree(left, right, asides=asides) and not (
            self.references.any_rounded and self._misrounds(left, right, asides)
        )

    def _misrounds(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a number rounds neither what a line writes nor what that stands for.

        "12 × 7.08M = 85.02M" goes on neither from 7,080,000 nor from 7,077,888, which a line above
        rounds.
        """
        if parts := _parts(left, right):
            return any(self._misrounds(*pair, asides) for pair in parts)
        stated = alone(right.expression, loose=right.loose)
        if stated is None or not isinstance(left.expression, Operation):
            return False
        wide = self.readings.value(left.expression, asides)
        value = evaluate(left.expression, self.readings.stated, asides=asides, replaced=self.references.unrounded)
        narrower = (value.low, value.high) != (wide.low, wide.high)
        return narrower and not (value.meets(stated) or is_cut(left, right, value, stated))


def _parts(left: Side, right: Side) -> list[tuple[Side, Side]]:
    """Return the parts of two sums or products of one shape, in pairs, or []."""
    one, other = left.expression, right.expression
    if not (isinstance(one, Operation) and isinstance(other, Operation) and one.symbols == other.symbols):
        return []
    return [(Side(mine), Side(its, right.loose)) for mine, its in zip(one.parts, other.parts, strict=True)]
