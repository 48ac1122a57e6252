"""Judge a number by the lines that break it down: the branches drawn or indented below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tallystick.answers.check.chain.mistyped import LEAST_OFF, digits_of, is_mistyped
from tallystick.answers.check.claims import Claim, is_total, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.allowances import MOST_BETWEEN
from tallystick.answers.check.earlier.lists import Lists, is_bytes
from tallystick.answers.check.earlier.repeated import count_in
from tallystick.answers.check.labels import KINDS, tags_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.arithmetic import Number, Value, exactly
from tallystick.derivations.slips import LEAST_TYPED, misrounds
from tallystick.derivations.statements import Derivation

SPANS = frozenset({"one", "all"})  # tags for the number of layers
MOST_BRANCHES = 40  # statements above that may be branches of one line
MOST_ABOVE = 60  # lines from a branch up to what it is a branch of
NEAR = Fraction(6, 5)  # what the layers have, by a number that is less but means all of it

_MARKED = re.compile(r"[\s│┃]*(?:[└├╰┣┗]|[-*•]\s)")  # drawn, or with a bullet
# What precedes the words of a line, but for ** of bold ones: the deeper, the longer.
_BEFORE = re.compile(r"(?:[\s>│┃└├╰┣┗─━|•-]|\*(?=\s))*")


class Branches:
    """Judges the numbers that their own branches break down."""

    def __init__(self, derivation: Derivation, so_far: Addends, lists: Lists, quantities: Quantities | None) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.lists = lists
        self.quantities = quantities
        self.depth = 0  # of the last statement
        self._places: dict[int, int] = {}  # of the statements, by line
        self._parents: dict[int, int | None] = {}  # of the statements, by place

    def ended(self, place: int) -> Iterator[tuple[int, Sum]]:
        """Yield each number whose branches end before a statement, and their sum, deepest first.

        It is their sum, or that but for a digit, or less than they are. Of "12 layers", it may be
        12 times the sum.

        Args:
            place: index of a statement, or their number at the end of the text.
        """
        before, self.depth = self.depth, depth_of(self.derivation, place)
        for parent, places in self._closed(place) if self.depth < before else ():
            if len(places) == 1:
                yield parent, self._total_of(parent, *places)
                continue
            claim, sums = self.so_far.at(parent), self.so_far.sum(places)
            count = count_in(self.derivation.statements[parent].label)
            marked = all(
                _MARKED.match(self.derivation.lines[self.derivation.statements[one].line - 1]) for one in places
            )
            whole, fits = sums.times(exactly(count)), sums.meets(claim.written)
            if count > 1 and not fits and marked and self._means_layers(parent, places, whole):
                yield parent, Sum(places, whole, whole.meets(claim.written), (count,) * len(places))
                continue
            exact = all(map(_is_exact, map(self.so_far.at, (parent, *places))))
            wrong = self._is_mistyped(parent, sums) if exact else marked and self._is_off(parent, places, sums)
            firm = marked or exact or (digits_of(claim) >= LEAST_TYPED and self._begins_below(parent, places))
            if (firm and fits) or wrong:
                yield parent, Sum(places, sums, fits)

    def _total_of(self, title: int, total: int) -> Sum:
        """Return the total below a title as its sum; the title may round it, but for a little."""
        claim, sums = self.so_far.at(title), self.so_far.at(total).written
        rounds = abs(claim.stated - sums.exact) <= LEAST_OFF * sums.exact and claim.is_rounded
        return Sum((total,), sums, rounds or sums.meets(claim.written))

    def _own_total(self, title: int, places: Sequence[int]) -> int | None:
        """Return the last branch of a title that is its total, of one layer or of all as the title.

        Example: "MoE (393M per layer)", and below it "Total per layer: 0.26M + 602.88M = 603.14M".
        """
        line, claim = self.derivation.statements[title], self.so_far.claims[title]
        about = tags_of(f"{line.label} {line.clause}")
        if claim is None or not line.titles or is_bytes(line) or not about - KINDS:
            return None
        for place in reversed(places):
            below, number = self.derivation.statements[place], self.so_far.claims[place]
            if number is not None and number.right and number.adds and is_total(below):
                own = tags_of(below.label)
                if own & SPANS == about & SPANS and own - KINDS <= about and number.kind == claim.kind:
                    return place
        return None

    def _means_layers(self, parent: int, places: Sequence[int], whole: Value) -> bool:
        """Return whether a number is what each of some layers has, or that but for a slip.

        It may not be a little less, nor any less if each branch says that it is of one layer.
        Layers may have more than a list says.
        """
        claim = self.so_far.at(parent)
        if whole.meets(claim.written) or self._is_mistyped(parent, whole):
            return True
        counts = not any(is_bytes(self.derivation.statements[one]) for one in (parent, *places))
        each = all("one" in tags_of(self.derivation.statements[place].label) for place in places)
        each = each and claim.written.low > NEAR * self.so_far.sum(places).high  # no number of one layer
        less = claim.written.high < whole.low and (each or whole.low < NEAR * claim.written.high)
        return counts and less and not self._is_known(claim)

    def _is_mistyped(self, parent: int, sums: Value) -> bool:
        claim = self.so_far.at(parent)
        return is_mistyped(claim, sums, judged=False) and not self._is_known(claim)

    def _is_known(self, claim: Claim) -> bool:
        """Return whether a number has a formula, or is the model's."""
        return claim.expression is not None or (self.quantities is not None and bool(self.quantities.of(claim.stated)))

    def _is_off(self, parent: int, places: Sequence[int], sums: Value) -> bool:
        """Return whether a number without a formula is less than its branches, or mistyped.

        The branches of a number that is less have a formula.
        """
        computed = [self.so_far.at(place).expression is not None for place in (parent, *places)]
        below = self._begins_below(parent, places)
        claim = self.so_far.at(parent)
        if isinstance(claim.side, Number) and misrounds(claim.side, sums.exact) and below and not computed[0]:
            return not self._is_known(claim)
        unit = claim.side.unit if claim.rounded and isinstance(claim.side, Number) else 0  # "~7.08M" may be cut
        less = below and max(claim.written.high, claim.stated + unit) < sums.low
        counts = not is_bytes(self.derivation.statements[parent])
        return not computed[0] and all(computed[1:]) and less and not self.lists.are_apart((parent, *places), counts)

    def _begins_below(self, parent: int, places: Sequence[int]) -> bool:
        """Return whether the branches of a number begin on the line below it."""
        return self.derivation.statements[places[0]].line == self.derivation.statements[parent].last + 1

    def _closed(self, place: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each statement whose branches end before `place`, and the branches.

        Each of them states one number, alone on its line. Of a title with its own total among them,
        it is only the total.
        """
        statements, claims = self.derivation.statements, self.so_far.claims
        last = place - 1
        if last < 1 or (place < len(statements) and statements[place].line == statements[last].line):
            return
        parent = self._parent(last)
        while parent is not None and depth_of(self.derivation, parent) >= self.depth:
            places = self._branches(parent, last)
            if (total := self._own_total(parent, places)) is not None:
                places = [total]
            added = all((claim := claims[one]) is not None and claim.right and claim.adds for one in places)
            if (total is not None or len(places) > 1) and added and self._is_above(parent):
                yield parent, tuple(places)
            parent = self._parent(parent)

    def _is_above(self, parent: int) -> bool:
        """Return whether a statement may state the sum of its branches, even as their title."""
        claim = self.so_far.claims[parent]
        return claim is not None and claim.right and (claim.adds or self.derivation.statements[parent].titles)

    def _branches(self, parent: int, last: int) -> list[int]:
        """Return the branches of a statement, up to the last; [] if others stand between."""
        statements = self.derivation.statements
        after, places = statements[last].line, list[int]()
        for place in range(last, max(parent, last - MOST_BRANCHES), -1):
            line = statements[place]
            apart = after - line.last > MOST_BETWEEN or (places and place != last and line.line == after)
            if apart or line.section != statements[last].section:
                return []
            after = line.line
            if self._parent(place) == parent:
                places.insert(0, place)
        return places if after - statements[parent].last <= MOST_BETWEEN else []

    def _parent(self, place: int) -> int | None:
        """Return the statement that a statement is a branch of, or None.

        Lines without a number may stand between: "Attention:" between a layer and a matrix.
        """
        if place not in self._parents:
            if not self._places:
                self._places = {one.line: number for number, one in enumerate(self.derivation.statements)}
            first, depth, found = self.derivation.statements[place].line, depth_of(self.derivation, place), None
            for line in range(first - 1, max(0, first - 1 - MOST_ABOVE) if depth else first, -1):
                text = self.derivation.lines[line - 1]
                if text.strip() and (own := _depth(text)) < depth:
                    depth, found = own, self._places.get(line)
                    if found is not None or not depth:
                        break
            self._parents[place] = found
        return self._parents[place]


def depth_of(derivation: Derivation, place: int) -> int:
    """Return the column in which a statement's words begin, or 0 at the end of the text."""
    if place == len(derivation.statements):
        return 0
    return _depth(derivation.lines[derivation.statements[place].line - 1])


def _depth(line: str) -> int:
    before = _BEFORE.match(line)
    return len(before[0]) if before is not None else 0


def _is_exact(claim: Claim) -> bool:
    return is_whole(claim.side) and not claim.rounded
