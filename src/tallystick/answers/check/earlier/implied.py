"""Find what a lone number implies: it is the sum of lines above it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.chain.binary import meets_binary
from tallystick.answers.check.chain.mistyped import is_mistyped
from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.claims import Claim, is_total, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import Allowances
from tallystick.answers.check.earlier.columns import TAKEN_TIMES, Columns, item_around
from tallystick.answers.check.earlier.lists import LEAST_TOTAL, NEAR, NEAR_SUM, Lists, is_bytes
from tallystick.answers.check.earlier.model_totals import ModelTotals
from tallystick.answers.check.earlier.repeated import Repeated
from tallystick.answers.check.labels import EMBEDDINGS, KINDS, names_part, tags_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.arithmetic import Number, alone
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import (
    SUBTOTAL,
    TAKEN,
    UNCOUNTED,
    Derivation,
    Side,
    Statement,
    names_sum,
)

MOST_BEGUN = 12  # characters of a label that must begin a line
LEAST_ADDENDS = 3
MOST_LABEL = 6  # words of a label; more are a sentence
MOST_BEFORE = 2  # lines above the last ones
MOST_SLIP = 81  # of two swapped digits, 0 and 9, times a power of ten
MOST_SPREAD = Fraction(1, 50)  # of a rounded total that takes one layer several times
NEAR_TYPED = 10  # a mistyped digit changes a number at most by this factor
_NAMED_SUM = re.compile(r"[=≈][^=≈\d]*[^\W\d][^=≈\d+]*\+[^=≈\d]*[=≈]")
_LARGE = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[,._' ]\d{3})+(?!\d)|\d{5,}")


class Slip(NamedTuple):
    """A statement whose number has a digit wrong, the right number, and all that a total adds."""

    place: int
    meant: Fraction
    places: tuple[int, ...]


class Implied:
    """What the statements before imply for a number that stands alone."""

    def __init__(
        self, derivation: Derivation, so_far: Addends, quantities: Quantities | None, constants: Mapping[str, int]
    ) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.quantities = quantities
        self.columns = Columns(derivation, so_far)
        self.allowances = Allowances(derivation, so_far)
        self.lists = Lists(derivation, so_far, self.columns, self.allowances)
        self.repeated = Repeated(derivation, so_far, constants)
        self.model = ModelTotals(derivation, so_far, quantities, self.allowances, self.repeated)

    def sum(self, statement: Statement, claim: Claim, *, judged: bool) -> Sum | None:
        """Return the lines above that a lone number adds, or None if it is not their sum.

        Args:
            statement: the statement of the number.
            claim: its value.
            judged: whether it calls itself a total, and so must add all lines.
        """
        found = self._sum(statement, claim, judged=judged)
        if found is None or found.fits:
            again = found is not None and len(statement.sides) == 1 and self._rounds_total(claim, found.places)
            return None if again else found
        counted = tuple(
            place for place in found.places if not UNCOUNTED.search(self.derivation.statements[place].plain)
        )
        if not found.times and 1 < len(counted) < len(found.places):
            found = Sum(counted, self.so_far.sum(counted), fits=False)
        addends = [place for place in found.places if self.so_far.at(place).stated]  # "vision tokens: 0" adds nothing
        allowed = (self.allowances.passes_over(found.places), self.allowances.replaces(found.places, claim))
        passed = any(allowed) or self.allowances.has_unread(found.places, claim)
        if len(addends) < 2 or passed or self._restates(statement, claim, addends):
            return None
        return found._replace(fits=is_bytes(statement) and meets_binary(claim.side, found.sums))

    def _restates(self, statement: Statement, claim: Claim, places: Sequence[int]) -> bool:
        """Return whether a sentence repeats a total, or a number that is computed above it.

        Examples: "accept 31.5M total rather than …", "but the experts hold 1.36B total".
        """
        sentence = len(statement.label.split()) > MOST_LABEL
        totals = [place for place in places if is_total(self.derivation.statements[place])]
        if any(self.so_far.at(place).written.low > claim.written.high for place in totals):
            return True  # "At d = 128 the total is ~440 K", below a larger total
        same = [place for place in places if self.so_far.at(place).written.meets(claim.written)]
        return bool(same) and (sentence or not set(same).isdisjoint(totals))

    def _rounds_total(self, claim: Claim, places: Sequence[int]) -> bool:
        """Return whether a number only rounds a total above it: "30M" of 30.02M."""
        totals = (place for place in places if is_total(self.derivation.statements[place]))
        return any(claim.written.low <= self.so_far.at(place).written.exact <= claim.written.high for place in totals)

    def _sum(self, statement: Statement, claim: Claim, *, judged: bool) -> Sum | None:
        above = self.so_far.summed(claim.written)
        units = {self.derivation.statements[place].sides[-1].unit for place in above} if is_bytes(statement) else ()
        small = len(above) == 2 and claim.stated < LEAST_TOTAL and not judged
        if small or "parameters" in units or self._adds_embedding(above, statement):
            above = []
        sums_up = judged or names_sum(statement.label)
        if sums_up and not above and is_whole(claim.side):
            above = self.so_far.summed_with_size(claim.stated)
        if judged and (lacking := self.lists.lacking(statement, claim, above)) is not None:
            return lacking
        fits = bool(above)
        above = above or ([] if claim.kind else self._meant(statement, judged=judged))
        sums = self.so_far.sum(above)
        rounds, known = self.model.rounds(claim), self.model.states(claim)
        if known and not fits and self.model.are_others(above, statement, claim):
            return Sum(tuple(above), sums, fits=False)
        near = claim.stated / NEAR <= sums.exact <= claim.stated * NEAR
        one = "one" in tags_of(statement.label)
        if one or self._has_more(above):
            near = abs(claim.stated - sums.exact) <= LITTLE * claim.stated
            near = near or (one and judged and is_mistyped(claim, sums, judged=True))
        wrong = (
            near
            and not known
            and not statement.column  # a row may be left out of each column
            and self.allowances.are_listed(above)
            and not any(one.is_vague for one in (claim, *map(self.so_far.at, above)))
            and not self.allowances.leaves_out(above, claim)
            and not self.allowances.goes_on_right(above, claim)
            and not (judged and not tags_of(statement.label) and self.allowances.lacks_a_norm(above, claim))
        )
        exact = sums.exact == claim.stated and claim.stated >= LEAST_REFERENCE
        fits = fits or exact
        if (
            judged
            and not (fits or wrong or rounds or statement.column)
            and (column := self.columns.of(statement, claim))
        ):
            above, sums = column, self.so_far.sum(column)
            fits, wrong = sums.meets(claim.written), self.lists.is_off(column, claim)
        if judged and not fits and (rows := self.columns.by_next_column(statement)):
            above, sums = rows, self.so_far.sum(rows)
            fits, wrong = sums.meets(claim.written), not known
        if judged and fits and claim.written.high - claim.written.low <= LITTLE * claim.stated:
            self.columns.prove(statement, above)
        if judged and not fits and claim.written.high - claim.written.low <= MOST_SPREAD * claim.stated:
            several = self.repeated.of(claim) or self.model.others(statement, claim)
            if several is not None:
                return several
            wrong = wrong and not any(self.repeated.times(place) > 1 for place in above)
        if len(above) < 2 or not (exact or (sums_up and fits) or (wrong and not fits)):
            found = self.model.meant(statement, claim) or self._mistyped(claim, judged=sums_up)
            found = found or (self.lists.off(statement, claim) if judged and not known else None)
            return found or self.lists.more(statement, claim) or (None if known else self.lists.block(statement, claim))
        return Sum(tuple(above), sums, fits)

    def _adds_embedding(self, places: Sequence[int], statement: Statement) -> bool:
        """Return whether the number of one layer would add an embedding above its list."""
        labels = [self.derivation.statements[place].label for place in places]
        return any(tags_of(label) & EMBEDDINGS for label in labels) and "one" in tags_of(statement.label)

    def part_of(self, statement: Statement, claim: Claim) -> Fraction | None:
        """Return the number that a sum with words goes on from, if the sum is smaller, else None.

        Example: "4B + 32B + attention ≈ 12B", which is at least 36B.
        """
        place = self.so_far.place - 1
        before = self.so_far.claims[place] if place >= 0 and statement.label.startswith("+ ") else None
        if before is None or self.derivation.statements[place].line != statement.line or "|" in statement.plain:
            return None
        same = self.derivation.statements[place].sides[-1].unit in ("", statement.sides[0].unit)
        less = claim.written.high < before.written.low < NEAR_SUM * claim.written.high
        return before.stated if same and less and claim.stated >= LEAST_TOTAL else None  # not of "TP=8 + PP=2"

    def _mistyped(self, claim: Claim, *, judged: bool) -> Sum | None:
        """Return the last lines whose sum a number is, but for one digit or two swapped ones."""
        if self.model.rounds(claim) or (self.quantities is not None and self.quantities.of(claim.stated)):
            return None
        for found, sums in self.so_far.last():
            if sums.low > claim.stated * NEAR_TYPED:
                break
            if (
                len(found) > 1
                and is_mistyped(claim, sums, judged=judged)
                and not (self.allowances.leaves_out(found, claim) or self._lacks_one(found, claim))
            ):
                lines = self.derivation.statements[found[-1] : self.so_far.place + 1]
                taken = any(TAKEN.search(line.plain) or TAKEN_TIMES.search(line.plain) for line in lines)
                carried = any(self.so_far.at(one).error for one in found)
                # Three digits are a sum's by chance, once a text has many sections.
                apart = claim.is_rounded and len({line.section for line in lines}) > 1
                again = any(
                    self._rounds_total(self.so_far.at(one), [place for place in found if place != one]) for one in found
                )
                return None if taken or carried or apart or again else Sum(tuple(found[::-1]), sums, fits=False)
        return None

    def _lacks_one(self, found: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is the sum of a few more lines, without one of them."""
        free = self.so_far.free()
        for end in range(len(found) + 1, min(len(found) + MOST_BEFORE, len(free)) + 1):
            more = self.so_far.sum(free[:end]).exact - claim.stated
            if any(self.so_far.at(one).stated == more for one in free[:end]):
                return True
        return False

    def mistyped_addend(self, claim: Claim) -> Slip | None:
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

    def restated(self, left: Side, right: Side) -> Sum | None:
        """Return the last lines if the second of two unequal numbers rounds their sum.

        The first number is that sum, but for a digit: "Total: 326.5B ≈ 0.34T" of 336.5B.
        """
        one, other = left.expression, right.expression
        rounds = alone(other, loose=True)
        if not isinstance(one, Number) or rounds is None:
            return None
        for found, sums in self.so_far.last():
            if len(found) > 1 and sums.meets(rounds) and is_typed_for(one, sums.exact):
                return Sum(tuple(found[::-1]), sums, fits=False)
            if sums.low > rounds.high:
                break
        return None

    def _has_more(self, places: Sequence[int]) -> bool:
        """Return whether unused statements precede `places`."""
        return bool(places) and min(self.so_far.free(), default=places[0]) < places[0]

    def _meant(self, statement: Statement, *, judged: bool) -> list[int]:
        """Return the statements that a lone number must be the sum of.

        A total sums all; a layer's number sums that layer's statements.
        """
        about = tags_of(statement.label)
        if SUBTOTAL.search(statement.label):
            return self.columns.block(statement)
        if judged and not about:
            free = self.so_far.free()[::-1]
            begins = item_around(self.derivation.lines, statement.line)
            own = [
                place
                for place in free
                if (one := self.derivation.statements[place]).section == statement.section and one.line >= begins
            ]
            if names_part(statement.items) and not own:
                return []  # "- MLP: …", and below it "- total 56,623,104"
            free = own if len(own) > 1 else free
            rows = [place for place in free if self.allowances.are_listed([place])] if "|" in statement.plain else free
            return rows if len(rows) > 2 else free  # a table's total sums its own rows
        layer = "one" in about or ("block" in about and "one" in tags_of(statement.heading))  # "Layer total"
        if not layer or about - KINDS:
            return []
        lines = [(place, self.derivation.statements[place]) for place in reversed(self.so_far.free())]
        return [place for place, line in lines if "one" in tags_of(line.label) | tags_of(line.heading)]


def is_only(statement: Statement) -> bool:
    """Return whether a line states one large number.

    "33,554,432 embedding, 20,971,520 other, 54,525,952 total" states three.
    """
    return statement.column > 0 or len(_LARGE.findall(statement.plain)) < 2


def begins_line(statement: Statement) -> bool:
    """Return whether the label begins its line, as in a list or table, not mid-sentence."""
    return statement.plain.lstrip("|#*+-• ").startswith(statement.label[:MOST_BEGUN])


def is_partly_read(statement: Statement) -> bool:
    """Return whether a number has a formula that was not read: "P_total = P_a + P_b = 12,288"."""
    return len(statement.sides) == 1 and _NAMED_SUM.search(statement.plain) is not None
