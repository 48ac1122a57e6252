"""Tell why a total may be right although the lines above it have another sum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

from tallystick.answers.check.chain.sides import numbers_in
from tallystick.answers.check.claims import Claim, is_total, measures
from tallystick.answers.check.earlier.addends import Addends
from tallystick.answers.check.labels import tags_of
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Value, exactly
from tallystick.derivations.statements import TAKEN, Derivation

MOST_BETWEEN = 3  # lines from one addend to the next: a rule or blank line may separate them
LONGEST_RUN = 12  # parts of one addend listed below it
LEAST_VECTOR = 16  # elements of a norm or a bias
MOST_IN_UNITS = 1_000_000  # of a number that is in thousands or millions
MOST_ABOVE = 4  # lines from the first addend up to the one that names the unit
MOST_AVERAGE = 1_000
# "params (M)", "in millions", "size (MB)", "参数量（万）"; no "124M"
_IN_UNITS = re.compile(
    r"[(\[\uff08/,]\s*(?:in |en |в )?(?:(?:[KMBG]|[KMGT]i?B)(?!\w)|mill?i?\w*|billions?|thousands?|Mio|Mrd|млн|тыс|[百千]?万|億|亿|百萬|백만|만)"
    r"|\b(?:in|en|in units of|all numbers in)\s(?:(?:[KMBG]|[KMGT]i?B)\b|mill?i\w+|thousands|billions|tausend|milliers|miles)|单位"
)
_CHANGED = re.compile(
    r"\b(?:before|after|vorher|nachher|avant|après|antes|después|depois|до|после)\b|之前|之后", re.IGNORECASE
)
OTHER = 10  # times: two totals in a row, of two models or of one before and after
_PER_TOKEN = re.compile(
    r"(?:\bper |/ ?|\bpro |\bpar |\bpor |\bна )tok[ea]n\b|토큰 ?당|每(?:个)?\s?(?:token|词元)|トークンあたり",
    re.IGNORECASE,
)
_IN_LIST = re.compile(r"\W*|\s*(?:[-*+•]|\d{1,2}[.)])\s.*|.*[:\uff1a]\s*")  # a rule, an item, a title, or nothing
_BLOCKS = re.compile(r"\(\d{1,3}-\d{1,3}\): \d{1,3} x \w{1,80}\(")


class Allowances:
    """What a list of addends may leave out, repeat or misstate."""

    def __init__(self, derivation: Derivation, so_far: Addends) -> None:
        self.derivation = derivation
        self.so_far = so_far

    def goes_on_right(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is the sum of the right numbers, of which a line misstates one.

        It may also be one of these right numbers.
        """
        one, other = claim.written.low, claim.written.high
        right = [self.so_far.at(place).true for place in places]
        return one <= sum(right) <= other or any(one <= number <= other for number in right)

    def leaves_out(self, places: Sequence[int], claim: Claim, *, twice: bool = False) -> bool:
        """Return whether a total is the sum without a run of consecutive lines.

        Examples: the tied head, or the parts of a line.

        Args:
            places: the lines of the sum.
            claim: the total.
            twice: only leave out what is another line's number too.
        """
        rows = [self.so_far.at(place).written for place in places]
        sums = list(accumulate([exactly(0), *rows], Value.plus))
        current().step(10 * LONGEST_RUN * len(sums))
        last = len(sums)
        exact = claim.written.is_exact and all(row.is_exact for row in rows)
        runs = ((start, end) for start in range(last) for end in range(start + 1, min(last, start + 1 + LONGEST_RUN)))
        norms = self._are_norms(places) if exact else []
        return any(
            abs(sums[-1].exact - (sums[end].exact - sums[start].exact) - claim.stated)
            <= (sums[-1].high - sums[-1].low + claim.written.high - claim.written.low) / 2
            for start, end in runs
            if end - start > 1 or start not in norms
            if not twice or any(sums[end].less(sums[start]).meets(row) for row in (*rows[:start], *rows[end:]))
        )

    def _are_norms(self, places: Sequence[int]) -> list[int]:
        """Return which of some lines are norms of an exact list, that no total leaves out."""
        labels = (self.derivation.statements[place].label for place in places)
        return [number for number, label in enumerate(labels) if "norm" in tags_of(label)]

    def replaces(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total adds to a part of an earlier one, of which it is another case.

        Example: "weights 17.5, cache 10, total 27.5. With 500K: cache 25, total 42.5".
        """
        parts = {place: used for place in places if len(used := self.so_far.used_by(place)) > 1}
        rests = {
            place: claim.stated - self.so_far.sum([one for one in places if one != place]).exact for place in parts
        }
        return any(
            self.so_far.at(one).written.low <= rest <= self.so_far.at(one).written.high
            for place, rest in rests.items()
            for one in parts[place]
        )

    def lacks_a_norm(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total has a few vectors more than its list: the final norm, a bias.

        Their size is a factor of an addend: 3,200 next to 50257 × 1600.
        """
        more = claim.stated - self.so_far.sum(places).exact
        products = (self.so_far.at(place).expression for place in places)
        sizes = {number.value for product in products if product is not None for number in numbers_in(product)}
        return any(more in (size, 2 * size) for size in sizes if size >= LEAST_VECTOR)

    def rounds_in_units(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total of numbers in a unit, such as millions, is rounded as they are.

        Example: "params (M)", 525, 1,342, 5,637, 525, and 8,030 for 8,030.26, not 8,029.
        """
        rows = [self.so_far.at(place) for place in places]
        whole = all(one.stated.denominator == 1 and one.stated < MOST_IN_UNITS for one in (*rows, claim))
        off = abs(self.so_far.sum(places).exact - claim.stated)
        if not whole or 2 * off > len(rows) + 1:
            return False
        first, last = (self.derivation.statements[place].line for place in (min(places), self.so_far.place))
        above = self.derivation.lines[max(0, first - MOST_ABOVE - 1) : last]
        return any(map(_IN_UNITS.search, above))

    def averages(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a small total may be an average or a rate: at most the largest row.

        Example: a column "ratio" with 1.3, 3.6 and, for the total, 2.9.
        """
        return claim.stated < MOST_AVERAGE and claim.stated <= max(self.so_far.at(place).stated for place in places)

    def follows_a_total(self, claim: Claim) -> bool:
        """Return whether a total follows another one, or is before a change: "Total before:"."""
        place = self.so_far.place
        lines = self.derivation.statements
        if _CHANGED.search(lines[place].label) and any(_CHANGED.search(line.label) for line in lines[:place]):
            return True
        before = self.so_far.claims[place - 1] if place else None
        row = lines[place].column > 0 and place > 0 and lines[place - 1].line == lines[place].line
        if before is None or row or not is_total(lines[place - 1]):
            return False
        return claim.written.exact < OTHER * before.stated < OTHER * OTHER * claim.written.exact

    def adds_rate(self, places: Sequence[int]) -> bool:
        """Return whether an addend is of one token: no total adds "KV cache per token" as it is."""
        lines = (self.derivation.statements[place] for place in places)
        return any(_PER_TOKEN.search(line.label) for line in lines)

    def adds_last_of_rows(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total adds the last number of each row: of all layers, behind one's."""
        last = {self.derivation.statements[place].line: place for place in places}
        several = 1 < len(last) < len(places)
        return several and self.so_far.sum(list(last.values())).meets(claim.written)

    def repeat_a_block(self, places: Sequence[int]) -> bool:
        """Return whether a printed model has a block several times: "(0-11): 12 x Block("."""
        last = self.so_far.place
        first, total = (self.derivation.statements[place].line for place in (min(places, default=last), last))
        return any(map(_BLOCKS.search, self.derivation.lines[first - 1 : total - 1]))

    def are_listed(self, places: Sequence[int], *, items: bool = False) -> bool:
        """Return whether the statements from the first of `places` to the current one form a list.

        A list or table has one statement after another, with few lines between them.

        Args:
            places: the statements.
            items: whether more lines may be between them, if they are items of a list too.
        """
        lines = self.derivation.statements[min(places, default=self.so_far.place) : self.so_far.place + 1]
        if any(TAKEN.search(line) for line in self.derivation.lines[lines[0].line - 1 : lines[-1].last]):
            return False  # a line subtracts something
        gaps = ((before.last, after.line - 1) for before, after in pairwise(lines))
        return all(
            end - start < MOST_BETWEEN or (items and all(map(_IN_LIST.fullmatch, self.derivation.lines[start:end])))
            for start, end in gaps
        )

    def passes_over(self, places: Sequence[int]) -> bool:
        """Return whether a table row since the first of `places` was skipped because of its name.

        A row that seems to name bytes or adapters is skipped, yet "Engram memory" may be an addend.
        """
        rows = range(min(places, default=self.so_far.place), self.so_far.place)
        lines = self.derivation.statements
        added = {lines[place].line for place in places}  # a row may have a column of bytes too
        return any("|" in lines[row].plain and lines[row].line not in added and measures(lines[row]) for row in rows)

    def rounds_total(self, claim: Claim, places: Sequence[int]) -> bool:
        """Return whether a number only rounds a total above it: "30M" of 30.02M."""
        totals = (place for place in places if is_total(self.derivation.statements[place]))
        return any(claim.written.low <= self.so_far.at(place).written.exact <= claim.written.high for place in totals)
