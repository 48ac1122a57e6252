"""Tell whether a total is wrong for the list above it: off, mistyped, or less than its items."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.chain.binary import BINARY
from tallystick.answers.check.chain.mistyped import LEAST_OFF, ends_alike
from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.claims import Claim, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import Allowances
from tallystick.answers.check.earlier.columns import Columns
from tallystick.answers.check.earlier.multiples import has_multiples, takes_layers
from tallystick.answers.check.labels import EMBEDDINGS, KINDS, OUTSIDE, PARTIAL, TIED, tags_of
from tallystick.derivations.arithmetic import Number, Value
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import SUBTOTAL, TOTAL, Derivation, Statement, names_sum

NEAR_SUM = 10  # a column that misses its total by more than 1/10 lacks an addend
LEAST_TOTAL = 10_000  # a smaller number may be the sum of two sizes by chance: 1,536 = 768 + 768
MOST_UNLISTED = Fraction(1, 50)  # of a total: norms and biases that a list may leave out
MOST_MORE = Fraction(5, 4)  # of a block: what its lines may leave out
TWICE = Fraction(41, 20)  # the same of one that is counted twice, and rounded
NEAR = 2  # a total off by more than this factor is not meant as that sum
MOST_ABOVE = 12  # statements from a total up to a row of one layer
SHORT = 2  # digits of a total that is a block's with one mistyped
_RATE = re.compile(r"\b(?:per|each|or|instead|vs|without|before)\b|/ ?(?:[a-z]{3}|s\b)|→", re.IGNORECASE)
_REJECTED = re.compile(r"\btoo (?:much|many|large|big)\b", re.IGNORECASE)  # "14.5M... too much": another is tried


class Lists:
    """Judges totals by the lists above them."""

    def __init__(self, derivation: Derivation, so_far: Addends, columns: Columns, allowances: Allowances) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.columns = columns
        self.allowances = allowances

    def is_off(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is near a sum, but further away than rounding explains."""
        sums = self.so_far.sum(places)
        spread = sums.high - sums.low + claim.written.high - claim.written.low
        away = abs(sums.exact - claim.stated)
        off = spread < away and (away <= claim.stated / NEAR_SUM or ends_alike(claim.stated, sums.exact))
        off = off and not (self.allowances.leaves_out(places, claim) or self.allowances.goes_on_right(places, claim))
        return off and not has_multiples([self.so_far.at(place).written for place in places], claim.written)

    def off(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the items of the list above a total that is off by more than lists leave out."""
        items = self.columns.items(statement)
        sums = self.so_far.sum(items)
        if not items or abs(sums.exact - claim.stated) <= MOST_UNLISTED * claim.stated:
            return None
        if self._adds_above(items, sums, claim):
            return None
        typed = isinstance(claim.side, Number) and is_typed_for(claim.side, sums.exact)
        off = self.is_off(items, claim) or (typed and not self.allowances.leaves_out(items, claim))
        return Sum(tuple(items), sums, fits=False) if off else None

    def _adds_above(self, items: Sequence[int], sums: Value, claim: Claim) -> bool:
        """Return whether a total adds what stands above its list: one line, or all but a little."""
        free = self.so_far.free()
        above = [self.so_far.at(place).written for place in free if place not in items]
        rest = claim.written.less(sums)
        near = abs(self.so_far.sum(free).exact - claim.stated) <= LITTLE * claim.stated
        return bool(above) and (near or any(one.meets(rest) for one in above))

    def more(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the items of a list if their total is less than they are.

        It may be more: there is overhead that a list leaves out. Bytes may be added in GB and GiB.
        """
        if claim.stated < LEAST_TOTAL or not TOTAL.search(statement.label) or self._is_of_rows(statement):
            return None
        counts = not is_bytes(statement)
        run = self.columns.products(statement, exact=True) if counts and not tags_of(statement.label) else ()
        if any(self.so_far.at(place).written.low > claim.written.high for place in run) and not self.are_apart(
            run, counts
        ):
            return Sum(tuple(run), self.so_far.sum(run), fits=False)
        items = self.columns.items(statement, least_computed=2 if counts else 0) or self.columns.of(statement, claim)
        large = [place for place in items if self.so_far.at(place).stated > LITTLE * claim.stated]
        lines = [self.derivation.statements[place] for place in items]
        sums = self.so_far.sum(items)
        least = claim.written.high * (1 if counts else BINARY[-1])
        less = least < sums.low < NEAR_SUM * least
        apart = self.are_apart(large, counts)
        tied = any(TIED.search(line.plain) for line in (*lines, statement))
        fewer = self.allowances.leaves_out(items, claim, twice=counts) or (tied and self._leaves_one(items, claim))
        return Sum(tuple(items), sums, fits=False) if less and not apart and not fewer else None

    def _is_of_rows(self, statement: Statement) -> bool:
        """Return whether a total of one layer stands below rows of one layer, which no list has."""
        lines = self.derivation.statements
        before = lines[max(0, self.so_far.place - MOST_ABOVE) : self.so_far.place]
        return "one" in tags_of(statement.label) and any("one" in tags_of(line.label) for line in before)

    def _leaves_one(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is about the sum without one line: a tied table."""
        whole = self.so_far.sum(places).exact
        rest = (whole - self.so_far.at(place).written.exact for place in places)
        return any(abs(one - claim.stated) <= MOST_UNLISTED * claim.stated for one in rest)

    def block(self, statement: Statement, claim: Claim) -> Sum | None:
        """Return the block that a total ends, if it is less, or much more, or has a digit wrong.

        If each addend has a formula, the total goes on from their numbers as written, or before
        they were rounded. Else it may leave something out, and only a digit wrong is found.
        """
        number = claim.side
        if claim.stated < LEAST_TOTAL or not isinstance(number, Number) or not names_sum(statement.label):
            return None
        computed = self.columns.products(statement, exact=False)
        places = computed or self._plain_block(statement)
        lines = [self.derivation.statements[place] for place in places]
        if len(places) < 2 or not self.columns.is_closed(statement, places):
            return None
        tied = any(TIED.search(line.plain) for line in (*lines, statement))
        if self.are_apart(places, counts=not is_bytes(statement)):
            return None
        sums = self.so_far.sum(places)
        ways = (sums.exact, sum((self.so_far.at(place).true for place in places), Fraction(0)))
        far = all(abs(way - claim.stated) > LEAST_OFF * claim.stated for way in ways)
        less = claim.written.high < sums.low and sums.exact - claim.stated > LITTLE * claim.stated
        wrong = (far or less) and any(is_typed_for(number, way, least=SHORT) for way in ways)
        wrong = wrong or self._is_just_less(places, sums, claim)
        if computed or (self._are_whole(lines) and sums.exact <= NEAR * claim.stated):
            wrong = wrong or claim.stated + number.unit <= min(ways)
        if computed:
            wrong = wrong or MOST_MORE * max(ways) < claim.stated < TWICE * max(ways)
        if tied:  # it may be without the tied head, which is more than a little
            wrong = self._is_just_less(places, sums, claim)
        wrong = wrong and not self.allowances.leaves_out(places, claim)
        return Sum(tuple(places), sums, fits=False) if wrong else None

    def _are_whole(self, lines: Sequence[Statement]) -> bool:
        """Return whether lines are the layers of a model, and parts outside of them."""
        tags = [tags_of(line.label) for line in lines]
        layers = [about for about in tags if "block" in about and about <= KINDS - {"one"}]
        rest = [about for about in tags if about and about <= OUTSIDE]
        return len(layers) == 1 and len(set(rest)) == len(rest) == len(lines) - 1

    def _is_just_less(self, places: Sequence[int], sums: Value, claim: Claim) -> bool:
        """Return whether a total is a little less than its parts, all written to the last digit."""
        whole = is_whole(claim.side) and all(is_whole(self.so_far.at(place).side) for place in places)
        return whole and 0 < sums.exact - claim.stated <= LITTLE * claim.stated

    def _plain_block(self, statement: Statement) -> list[int]:
        """Return the statements right above a total, unless the last of them is a total too."""
        before = self.derivation.statements[self.so_far.place - 1] if self.so_far.place else statement
        return [] if names_sum(before.label) else self.columns.block(statement, spaced=True)

    def lacking(self, statement: Statement, claim: Claim, added: Sequence[int]) -> Sum | None:
        """Return the rows or items of a list if its total leaves out an embedding, else None.

        Args:
            statement: the statement of the total.
            claim: its number.
            added: the last rows, whose sum it is.
        """
        own = tags_of(statement.label) - {"all"} or SUBTOTAL.search(statement.label)
        if statement.column or own or not added:
            return None
        if "|" in statement.plain:
            rows = [place for place in self.so_far.free()[::-1] if self.allowances.are_listed([place])]
            rows = [place for place in rows if "|" in self.derivation.statements[place].plain]
        elif claim.is_rounded:
            rows = [place for place in self.columns.items(statement) if self.so_far.at(place).stated != claim.stated]
        else:
            return None  # "Total: 12 × 7,087,872 = 85,054,464" is meant so
        left = [place for place in rows if place < added[0]]
        embeds = [place for place in left if tags_of(self.derivation.statements[place].label) & EMBEDDINGS]
        large = self.so_far.sum(embeds).low > LEAST_OFF * claim.stated
        lines = [self.derivation.statements[place] for place in rows if self.so_far.at(place).stated] + [statement]
        partial = any(TIED.search(line.plain) or PARTIAL.search(line.plain) for line in lines)
        sums = self.so_far.sum(rows)
        if not large or partial or sums.meets(claim.written) or self.are_apart(rows, counts=not is_bytes(statement)):
            return None
        return Sum(tuple(rows), sums, fits=False)

    def are_apart(self, places: Sequence[int], counts: bool) -> bool:
        """Return whether some statements may not be addends of a total.

        They are of one layer, one thing in two ways, bytes among parameters, or the reverse.

        Args:
            places: the statements.
            counts: whether the total counts parameters.
        """
        lines = [self.derivation.statements[place] for place in places]
        return any(
            (_RATE.search(f"{line.label} {line.clause}") and not takes_layers(line))
            or _REJECTED.search(line.plain)
            or is_bytes(line) == counts
            for line in lines
        )


def is_bytes(statement: Statement) -> bool:
    """Return whether a statement's number counts bytes."""
    return statement.sides[-1].unit == "bytes"
