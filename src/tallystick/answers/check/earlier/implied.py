"""Find what a lone number implies: it is the sum of lines above it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tallystick.answers.check.chain.binary import meets_binary
from tallystick.answers.check.chain.mistyped import LEAST_OFF, by_power, is_mistyped
from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.claims import Claim, is_total, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import Allowances
from tallystick.answers.check.earlier.columns import Columns, item_around
from tallystick.answers.check.earlier.lists import LEAST_TOTAL, NEAR, NEAR_SUM, Lists, is_bytes
from tallystick.answers.check.earlier.mistyped_sums import MistypedSums
from tallystick.answers.check.earlier.model_totals import ModelTotals
from tallystick.answers.check.earlier.repeated import Repeated
from tallystick.answers.check.earlier.unread_addends import UnreadAddends
from tallystick.answers.check.labels import (
    EMBEDDINGS,
    KINDS,
    OF_ATTENTION,
    OF_MLP,
    OUTSIDE,
    PROJECTIONS,
    names_layer,
    names_part,
    tags_of,
)
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.statements import (
    SUBTOTAL,
    UNCOUNTED,
    Derivation,
    Statement,
    names_sum,
)

MOST_BEGUN = 12  # characters of a label that must begin a line
MOST_LABEL = 6  # words of a label; more are a sentence
MOST_OFF = Fraction(1, 10)  # of a sum with words that may leave out something
MOST_SPREAD = Fraction(1, 50)  # of a rounded total that takes one layer several times
_NAMED_SUM = re.compile(r"[=≈][^=≈\d]*[^\W\d][^=≈\d+]*\+[^=≈\d]*[=≈]")
_LARGE = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[,._' ]\d{3})+(?!\d)|\d{5,}")


class Implied:
    """What the statements before imply for a number that stands alone."""

    def __init__(
        self, derivation: Derivation, so_far: Addends, quantities: Quantities | None, constants: Mapping[str, int]
    ) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.columns = Columns(derivation, so_far)
        self.allowances = Allowances(derivation, so_far)
        self.lists = Lists(derivation, so_far, self.columns, self.allowances)
        self.repeated = Repeated(derivation, so_far, constants)
        self.model = ModelTotals(derivation, so_far, quantities, self.allowances, self.repeated)
        self.unread = UnreadAddends(derivation, so_far)
        self.mistyped = MistypedSums(derivation, so_far, quantities, self.allowances, self.model)

    def sum(self, statement: Statement, claim: Claim, *, judged: bool) -> Sum | None:
        """Return the lines above that a lone number adds, or None if it is not their sum.

        Args:
            statement: the statement of the number.
            claim: its value.
            judged: whether it calls itself a total, and so must add all lines.
        """
        if statement.label.startswith("+") and (found := self._with_words(statement, claim)) is not None:
            return found
        found = self._sum(statement, claim, judged=judged)
        if found is None or found.fits:
            again = (
                found is not None and len(statement.sides) == 1 and self.allowances.rounds_total(claim, found.places)
            )
            return None if again else found
        counted = tuple(
            place for place in found.places if not UNCOUNTED.search(self.derivation.statements[place].plain)
        )
        if not found.times and 1 < len(counted) < len(found.places):
            found = Sum(counted, self.so_far.sum(counted), fits=False)
        addends = [place for place in found.places if self.so_far.at(place).stated]  # "vision tokens: 0" adds nothing
        passed = self._is_allowed(statement, claim, found.places, addends)
        if addends and not (found.times or passed):
            if self.allowances.rounds_in_units(addends, claim):
                return found._replace(fits=True)
            passed = statement.column > 0 and self.allowances.averages(addends, claim)
        if len(addends) < 2 or passed or self._restates(statement, claim, addends) or self._adds_rest(statement, claim):
            return None
        return found._replace(fits=is_bytes(statement) and meets_binary(claim.side, found.sums))

    def _is_allowed(self, statement: Statement, claim: Claim, places: Sequence[int], addends: Sequence[int]) -> bool:
        """Return whether a number that is not the sum of some lines may be right all the same."""
        allows = self.allowances
        return (
            allows.passes_over(places)
            or allows.replaces(places, claim)
            or self.unread.explain(places, claim)
            or allows.repeat_a_block(places)
            or allows.adds_last_of_rows(places, claim)
            or allows.adds_rate(places)
            or self.model.is_one_layer(statement, claim)
            or self._adds_embedding(places, statement)
            or allows.follows_a_total(claim)
            or (bool(addends) and self.unread.takes_twice(addends, claim))
            or (self.model.states(claim) and allows.leaves_out(places, claim))
            or (
                self.model.is_exact(claim) and abs(self.so_far.sum(places).exact - claim.stated) > LITTLE * claim.stated
            )
        )

    def _with_words(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the lines that a number adds to the one before it, as its words say, or None.

        "3 × 1.2M + embeddings ≈ 3.7M" adds all embeddings above. It is wrong if it is far off.
        Norms may have no line: "2 × 768 × 3072 + LN ≈ 7.1M".
        """
        lines, before = self.derivation.statements, self.so_far.place - 1
        about = tags_of(statement.label) - KINDS
        own = self.so_far.claims[before] if before >= 0 and lines[before].line == statement.line else None
        if own is None or not about <= OUTSIDE | {"norm"}:
            return None
        meant = EMBEDDINGS if about <= EMBEDDINGS else about
        named = [place for place in self.so_far.free() if tags_of(lines[place].label) - KINDS <= meant]
        named = [place for place in named if place != before and tags_of(lines[place].label) - KINDS]
        little = about <= {"norm", "final"}  # it adds next to nothing, whether a line has it or not
        sums = self.so_far.sum([before, *named])
        fits = sums.meets(claim.written)
        most = LEAST_OFF if little else MOST_OFF
        far = abs(sums.exact - claim.stated) > most * claim.stated and not self.model.states(claim)
        return Sum((*sorted(named), before), sums, fits) if about and (named or little) and (fits or far) else None

    def _adds_rest(self, statement: Statement, claim: Claim) -> bool:
        """Return whether a number adds all lines so far but those of one layer, or the totals.

        The lines of one layer have it in their label, or stand under it. A number may also add all
        but the totals, such as one of a layer.
        """
        lines, free = self.derivation.statements, self.so_far.free()
        named = [place for place in free if "one" not in tags_of(lines[place].label)]
        under = [
            place
            for place in named
            if not any("one" in tags_of(words) for words in (lines[place].heading, *lines[place].items))
        ]
        totals = [place for place in free if names_sum(lines[place].label)]
        others = [place for place in free if place not in totals]
        ways = [totals] if "one" in tags_of(statement.label) else [named, under, totals, others]
        return any(len(rest) > 1 and self.so_far.sum(rest).meets(claim.written) for rest in ways)

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

    def _sum(self, statement: Statement, claim: Claim, *, judged: bool) -> Sum | None:
        sums_up = judged or names_sum(statement.label)
        above = self._added(statement, claim, sums_up, judged=judged)
        if judged and (lacking := self.lists.lacking(statement, claim, above)) is not None:
            return lacking
        places = above or ([] if claim.kind else self._meant(statement, judged=judged))
        sums, known = self.so_far.sum(places), self.model.states(claim)
        exact = sums.exact == claim.stated and claim.stated >= LEAST_REFERENCE
        found = Sum(tuple(places), sums, fits=bool(above) or exact)
        if known and not found.fits and self.model.are_others(places, statement, claim):
            return found
        wrong = not known and self._is_off(statement, claim, found, judged=judged)
        spread = claim.written.high - claim.written.low
        if judged:
            found, wrong = self._by_layout(statement, claim, found, wrong)
            if found.fits and spread <= LITTLE * claim.stated:
                self.columns.prove(statement, found.places)
            one = "one" in tags_of(statement.label)  # the number of one layer takes no line several times
            if not (found.fits or one):
                precise = spread <= MOST_SPREAD * claim.stated
                several = self.repeated.of(claim) if precise else None
                if (several := several or self.model.others(statement, claim)) is not None:
                    return several
                wrong = wrong and not (precise and self.repeated.may_take(found.places, claim))
        sums_up = sums_up or (found.fits and names_layer(statement.label))
        stands = exact or (sums_up and found.fits) or (wrong and not found.fits)
        return (
            found if stands and len(found.places) > 1 else self._otherwise(statement, claim, judged=judged, known=known)
        )

    def _added(self, statement: Statement, claim: Claim, sums_up: bool, *, judged: bool) -> list[int]:
        """Return the last lines that have the number as their sum, or []."""
        above = self.so_far.summed(claim.written)
        units = {self.derivation.statements[place].sides[-1].unit for place in above} if is_bytes(statement) else ()
        small = len(above) == 2 and claim.stated < LEAST_TOTAL and not judged
        if small or "parameters" in units or self._adds_embedding(above, statement):
            above = []
        if above and not sums_up and self._is_one_matrix(above, statement):
            return []
        if above and claim.is_rounded:
            above = self._from_first(above, claim)
        return self.so_far.summed_with_size(claim.stated) if sums_up and not above and is_whole(claim.side) else above

    def _from_first(self, places: Sequence[int], claim: Claim) -> list[int]:
        """Return the lines of a rounded sum, with the rows right above them that do not change it.

        Example: "| LayerNorm | 1,280 |" above "| Attention | 1.23M |", in "| Total | 4.92M |".
        """
        lines, free, found = self.derivation.statements, self.so_far.free(), list(places)
        above = found[0] - 1
        while above in free and "|" in lines[above].plain and lines[above].last + 1 == lines[above + 1].line:
            if not self.so_far.sum([above, *found]).meets(claim.written):
                break
            found.insert(0, above)
            above -= 1
        return found

    def _is_one_matrix(self, places: Sequence[int], statement: Statement) -> bool:
        """Return whether a number is of one matrix or module, and by chance the sum of others.

        Examples: "K: 1,048,576", "V: 1,048,576", "O: 2,097,152"; an MLP of two attentions' size.
        """
        about = tags_of(statement.label)
        matrix = about & (PROJECTIONS | OF_MLP - {"mlp"})
        others = [tags_of(self.derivation.statements[place].label) for place in places]
        if about - KINDS == {"mlp"} and all(one & OF_ATTENTION and not one & OF_MLP for one in others):
            return True
        return len(matrix) == 1 and all(matrix.isdisjoint(one) for one in others)

    def _is_off(self, statement: Statement, claim: Claim, found: Sum, *, judged: bool) -> bool:
        """Return whether a number unaccountably misses the sum of lines that it must add."""
        above, sums = found.places, found.sums
        near = claim.stated / NEAR <= sums.exact <= claim.stated * NEAR
        if "|" in statement.plain and not near:
            near = by_power(*sorted((sums.exact, claim.stated)))  # a zero too many below a column
        one = "one" in tags_of(statement.label)
        if one or self._has_more(above):
            near = abs(claim.stated - sums.exact) <= LITTLE * claim.stated
            total = judged or names_layer(statement.label)  # "Per block", of one layer
            near = near or (one and total and is_mistyped(claim, sums, judged=True))
        return (
            near
            and not statement.column  # a row may be left out of each column
            and self.allowances.are_listed(above)
            and not any(one.is_vague for one in (claim, *map(self.so_far.at, above)))
            and not self.allowances.leaves_out(above, claim)
            and not self.allowances.goes_on_right(above, claim)
            and not (judged and not tags_of(statement.label) and self.allowances.lacks_a_norm(above, claim))
        )

    def _by_layout(self, statement: Statement, claim: Claim, found: Sum, wrong: bool) -> tuple[Sum, bool]:
        """Return the rows that a total adds by its layout, and if it is wrong; else as found."""
        if not (found.fits or wrong or statement.column or self.model.rounds(claim)):
            column = self.columns.of(statement, claim)
            if column:
                found = self._of(column, claim)
                wrong = self.lists.is_off(column, claim)
        if not found.fits and (rows := self.columns.by_next_column(statement)):
            found = self._of(rows, claim)
            wrong = not self.model.states(claim)
        return found, wrong

    def _of(self, places: Sequence[int], claim: Claim) -> Sum:
        sums = self.so_far.sum(places)
        return Sum(tuple(places), sums, fits=sums.meets(claim.written))

    def _otherwise(self, statement: Statement, claim: Claim, *, judged: bool, known: bool) -> Sum | None:
        """Return lines that show a digit wrong in a total, or that it is too far off, or None."""
        if (found := self.model.meant(statement, claim)) is not None:
            return found
        total = judged or names_sum(statement.label) or (names_layer(statement.label) and not statement.column)
        if (found := self.mistyped.of(claim, judged=total)) is not None:
            return found
        if judged and not known and (found := self.lists.off(statement, claim)) is not None:
            return found
        found = self.lists.more(statement, claim) or (None if known else self.lists.block(statement, claim))
        little = found is not None and abs(found.sums.exact - claim.stated) <= LITTLE * claim.stated
        return None if known and little else found  # "124.4M" of the model, whose parts are rounded

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
        spread = before.term.spread if before.term is not None else 0
        less = claim.written.high < before.written.low - spread and before.written.low < NEAR_SUM * claim.written.high
        return before.stated if same and less and claim.stated >= LEAST_TOTAL else None  # not of "TP=8 + PP=2"

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
    """Return whether the label begins its line, as in a list or table, or is the heading above."""
    if statement.label == statement.heading:
        return True  # "### Total parameters", and below it "144.99M parameters"
    return statement.plain.lstrip("|#*+-• ").startswith(statement.label[:MOST_BEGUN])


def is_partly_read(statement: Statement) -> bool:
    """Return whether a number has a formula that was not read: "P_total = P_a + P_b = 12,288"."""
    return len(statement.sides) == 1 and _NAMED_SUM.search(statement.plain) is not None
