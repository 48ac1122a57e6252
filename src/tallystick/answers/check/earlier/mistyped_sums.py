"""Find a digit wrong in a total or in one of its addends, by the sum of the last lines."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.chain.mistyped import digits_of, is_mistyped
from tallystick.answers.check.claims import Claim, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import Allowances
from tallystick.answers.check.earlier.columns import TAKEN_TIMES
from tallystick.answers.check.earlier.lists import LEAST_TOTAL, NEAR
from tallystick.answers.check.earlier.model_totals import ModelTotals
from tallystick.answers.check.earlier.multiples import takes_layers
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.arithmetic import Number, Value, alone, exactly
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import TAKEN, Derivation, Side, margin_of

LEAST_ADDENDS = 3
LEAST_APART = 5  # digits of a rounded total, of lines in several sections
LEAST_TYPED = 10_000  # a shorter line is another one but for a digit by chance
MOST_BEFORE = 2  # lines above the last ones
MOST_SLIP = 81  # of two swapped digits, 0 and 9, times a power of ten
NEAR_TYPED = 10  # a mistyped digit changes a number at most by this factor


class Slip(NamedTuple):
    """A statement whose number has a digit wrong, the right number, and all that a total adds."""

    place: int
    meant: Fraction
    places: tuple[int, ...]


class MistypedSums:
    """Finds the last lines whose sum has a digit wrong, or becomes right by one digit."""

    def __init__(
        self,
        derivation: Derivation,
        so_far: Addends,
        quantities: Quantities | None,
        allowances: Allowances,
        model: ModelTotals,
    ) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.quantities = quantities
        self.allowances = allowances
        self.model = model

    def of(self, claim: Claim, *, judged: bool) -> Sum | None:
        """Return the last lines whose sum a number is, but for one digit or two swapped ones."""
        if self.model.rounds(claim) or (self.quantities is not None and self.quantities.of(claim.stated)):
            return None
        exact, rounded, true = judged and is_whole(claim.side), judged and claim.is_rounded, Fraction(0)
        most = claim.stated * NEAR_TYPED
        for found, sums in self.so_far.last():
            if sums.low > most:
                break
            if rounded:
                true += self.so_far.at(found[-1]).true
            if len(found) < 2:
                continue
            typed = is_mistyped(claim, sums, judged=judged) or (exact and self._has_slip(found, claim, sums))
            if not typed and rounded and is_mistyped(claim, exactly(true), judged=True):
                typed, sums = True, exactly(true)  # noqa: PLW2901 - 7.09M of lines with 2.36M and 4.72M
            if typed and not (self.allowances.leaves_out(found, claim) or self._lacks_one(found, claim)):
                lines = self.derivation.statements[found[-1] : self.so_far.place + 1]
                added = (self.derivation.statements[place] for place in found)
                times = any(TAKEN_TIMES.search(line.plain) and not takes_layers(line) for line in added)
                taken = times or any(TAKEN.search(line.plain) for line in lines)
                carried = any(self.so_far.at(one).error for one in found)
                # Three digits are a sum's by chance, once a text has many sections.
                sections = {line.section for line in lines}
                few = claim.is_rounded and digits_of(claim) < LEAST_APART
                apart = few and (len(sections) > 1 or not self._are_indented_alike(found))
                again = any(
                    self.allowances.rounds_total(self.so_far.at(one), [place for place in found if place != one])
                    for one in found
                )
                return None if taken or carried or apart or again else Sum(tuple(found[::-1]), sums, fits=False)
        return None

    def _has_slip(self, found: Sequence[int], claim: Claim, sums: Value) -> bool:
        """Return whether one digit of one line is all that an exact total misses of its list."""
        if len(found) < LEAST_ADDENDS or sums.low is not sums.high:
            return False
        off = claim.stated.numerator - sums.exact.numerator  # of whole numbers
        while off and not off % 10:
            off //= 10
        if not 0 < abs(off) <= MOST_SLIP:
            return False  # no digit makes this difference: much faster
        more = claim.stated - sums.exact
        numbers = (self.so_far.at(place).stated for place in found)
        return any(is_one_slip(str(one), str(one + more)) for one in numbers if one >= LEAST_TYPED)

    def _are_indented_alike(self, places: Sequence[int]) -> bool:
        return len({margin_of(self.derivation.lines[self.derivation.statements[one].line - 1]) for one in places}) == 1

    def _lacks_one(self, found: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is the sum of a few more lines, without one of them."""
        free = self.so_far.free()
        for end in range(len(found) + 1, min(len(found) + MOST_BEFORE, len(free)) + 1):
            more = self.so_far.sum(free[:end]).exact - claim.stated
            if any(self.so_far.at(one).stated == more for one in free[:end]):
                return True
        return False

    def addend(self, claim: Claim) -> Slip | None:
        """Return the one addend with a digit wrong, if the last lines then add up to the model.

        Example: 38,297,376 among the parts of 124,439,808. Corrected it is a part of the model.
        """
        total = self.quantities.total if self.quantities else None
        if self.quantities is None or claim.stated != total or not is_whole(claim.side):
            return None
        for found, sums in self.so_far.last():
            off = claim.stated - sums.exact
            if sums.low < sums.high or sums.exact > NEAR * claim.stated:
                break
            if not 0 < int(str(abs(off)).rstrip("0") or 0) <= MOST_SLIP:
                continue  # no digit makes this difference: much faster
            slips = [place for place in found if self._is_slip(self.so_far.at(place), off)]
            if len(found) >= LEAST_ADDENDS and len(slips) == 1:
                return Slip(slips[0], self.so_far.at(slips[0]).stated + off, tuple(found[::-1]))
        return None

    def _is_slip(self, claim: Claim, off: Fraction) -> bool:
        """Return whether a number without a formula is a part of the model, but for a digit."""
        meant = claim.stated + off
        lone = claim.expression is None and is_whole(claim.side) and claim.stated >= LEAST_TOTAL
        parts = self.quantities.of(meant) if lone and self.quantities else ()
        return bool(parts) and is_one_slip(str(claim.stated), str(meant))

    def restated(self, number: Number, rounded: Side) -> Sum | None:
        """Return the last lines if the second of two unequal numbers rounds their sum.

        The first number is that sum, but for a digit: "Total: 326.5B ≈ 0.34T" of 336.5B.
        """
        rounds = alone(rounded.expression, loose=True)
        if rounds is None:
            return None
        for found, sums in self.so_far.last():
            if len(found) > 1 and sums.meets(rounds) and is_typed_for(number, sums.exact):
                return Sum(tuple(found[::-1]), sums, fits=False)
            if sums.low > rounds.high:
                break
        return None

    def total(self, number: Number, rounded: Side) -> Fraction | None:
        """Return the model's total if a number mistypes it, and the next one rounds it, else None.

        Example: "134,439,808 (~124M)".
        """
        rounds = alone(rounded.expression, loose=True)
        total = Fraction(self.quantities.total) if self.quantities else None
        if total is None or rounds is None or not (is_typed_for(number, total) and exactly(total).meets(rounds)):
            return None
        return total
