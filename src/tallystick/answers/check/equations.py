"""Judge each equation, given the variables, values and errors of the lines before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from tallystick.answers.check.chain.doubts import Doubts
from tallystick.answers.check.chain.mistyped import mistyped_aside
from tallystick.answers.check.chain.readings import Sides
from tallystick.answers.check.chain.results import is_slip_of, results_in, with_results
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, has_names, paired_parts
from tallystick.answers.check.claims import (
    LEAST_COUNT,
    Claim,
    is_running,
    is_total,
    is_whole,
    kind_of,
    lone,
)
from tallystick.answers.check.earlier.addends import Sum
from tallystick.answers.check.earlier.branches import Branches
from tallystick.answers.check.earlier.continued import Continued
from tallystick.answers.check.earlier.implied import Implied, begins_line, is_only, is_partly_read
from tallystick.answers.check.earlier.lists import LEAST_TOTAL, is_bytes
from tallystick.answers.check.earlier.multiples import Multiples, times_before
from tallystick.answers.check.earlier.running import Running
from tallystick.answers.check.earlier.said import said
from tallystick.answers.check.labels import layers_of, names_layer, tags_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.terms import Term, labelled
from tallystick.answers.check.terms import times as times_of
from tallystick.answers.check.verdicts import Verdicts
from tallystick.derivations.arithmetic import (
    ASIDES,
    Expression,
    Number,
    Operation,
    Undefined,
    alone,
    exactly,
    is_sum,
)
from tallystick.derivations.expressions.phrases import is_count
from tallystick.derivations.slips import is_typed_for
from tallystick.derivations.statements import (
    Derivation,
    Side,
    Statement,
    Unread,
    names_sum,
)

_SIZE = re.compile(
    r"(?<![^\W_])(?:size|vocab|dim|len|length|ctx|context|hidden|steps|iters|epochs|interval|tokens)(?![^\W_])",
    re.IGNORECASE,
)  # vocab_size, total_steps
SMALL = frozenset({"norm", "bias", "router"})  # tags of parts that are no larger than a size
LONGEST_SYMBOL = 2  # letters; a longer name with a large number is what is counted: "norms = 266,240"


class Judge(Verdicts):
    """Judges statements in text order, with the values that earlier ones defined."""

    def __init__(self, derivation: Derivation, quantities: Quantities | None, constants: Mapping[str, int]) -> None:
        super().__init__(derivation, quantities, constants)
        self.implied = Implied(derivation, self.so_far, quantities, constants)
        self.branches = Branches(derivation, self.so_far, self.implied.lists, quantities)
        self.multiples = Multiples(derivation, self.so_far)
        self.running = Running(derivation, self.so_far)
        self.continued = Continued(derivation, self.so_far, self.readings)
        self.doubts = Doubts(self.readings, quantities, constants, derivation)
        self.unread = list(derivation.unread)
        self.refused: list[tuple[int, str]] = []

    # -- one statement ----------------------------------------------------------------------------

    def read(self, place: int) -> None:
        """Judge a statement, and record its claim."""
        self.close(place)
        statement = self.derivation.statements[place]
        self.so_far.place, self.so_far.kind = place, kind_of(statement)
        self.readings.forget()
        before = self.claims[-1] if self.claims else None
        valued = [side for side in statement.sides if self.variables.has_value(side)]
        self.unread += [Unread(statement.line, statement.text)] * (len(statement.sides) - len(valued))
        sides = self.readings.meant(statement, self.variables.sides(statement, valued, self.claims), before)
        if not sides:
            self.claims.append(None)
            return
        try:
            with self.variables.scope(sides):
                self._judge(place, statement, sides)
        except Undefined:  # 5 / x, if x is 0 after an earlier line is corrected
            self.claims[place:] = [None]
            self.unread.append(Unread(statement.line, statement.text))

    def close(self, place: int) -> None:
        """Judge the numbers whose branches end before a statement by the sums of the branches."""
        for parent, found in self.branches.ended(place):
            statement, claim = self.derivation.statements[parent], self.so_far.at(parent)
            self.so_far.place, self.so_far.kind = parent, claim.kind
            if not claim.adds:  # a title, whose branches are added in its place
                self._equation(statement, claim, Number(found.sums.exact), claim.side, found.fits, last=True)
                if names_layer(statement.label):  # "4 blocks: 4 × 787K" takes them below
                    self.so_far.use(*found.places)
            elif found.fits and statement.line in self.judged:
                self.so_far.use(*found.places)
            else:
                self._sum_of(statement, claim, found)

    def _judge(self, place: int, statement: Statement, sides: Sides) -> None:
        sides = self._with_right_factor(statement, sides)
        asides = self.readings.asides(sides)
        pairs = self.links.pairs(sides, asides)
        cut = None
        for number, (left, right, agree) in reversed(list(enumerate(pairs))):
            if not (agree or _is_passed_over(pairs, number)) and (
                why := self._unjudged(statement, left, right, asides)
            ):
                cut = Unread(statement.line, statement.text, why)
                self.unread.append(cut)
                self._before(statement, sides[: number + 1], pairs[:number], asides)
                sides, pairs = sides[number + 1 :], pairs[number + 1 :]
                break
        self._several_times(statement, sides)
        claim = self._claim(sides, asides=asides, right=all(agree for *_, agree in pairs))
        commented = isinstance(sides[-1].expression, Operation)  # "attention = 150,994,944 (17.6%)"
        named = statement.name.replace("_", "").isalpha() and not _SIZE.search(statement.name)
        counts = claim.stated >= LEAST_COUNT and named and len(statement.name) > LONGEST_SYMBOL
        claim.defines = bool(statement.name) and claim.expression is None and not (commented or counts)
        claim.written = alone(claim.side, loose=claim.rounded) or exactly(claim.stated)
        size = statement.aside and claim.stated < LEAST_TOTAL and not tags_of(statement.label) & SMALL
        # No addend is "(GQA: 8 heads × 128 = 1024)", but "(norms: 2 × 512 = 1024)" is.
        claim.adds = not claim.defines and claim.stated.denominator == 1 and not (size or statement.titles)
        claim.kind = self.so_far.kind
        self.claims.append(claim)
        if is_running(statement):
            self._run(statement, claim)
            return
        claim.term = self._term(claim, statement)
        self.references.use_small(claim)
        claim.match = self.matches.of(claim, statement) if pairs else None
        exact = self._links(statement, claim, sides, pairs, asides=asides)
        judged = statement.line in self.judged
        if cut is not None and not pairs and judged:
            self.unread.remove(cut)  # "× 96 heads × 96 layers = …" is judged by the line above it
        if not pairs and not (judged and self._is_said(statement, claim)):
            self._alone(statement, claim)
        elif claim.expression is None and claim.right and not exact:
            self._typed(statement, claim)  # "6,738,415,616 ≈ 6.74B"
        if statement.name:
            self.variables.define(statement.name, claim, place)
        begins = statement.label != "" and f". {statement.label}" in statement.plain  # a sentence of its own
        row = not (pairs or statement.column or begins)
        if place and row and self.derivation.statements[place - 1][:4] == statement[:4]:
            self.so_far.use(place - 1)  # one table row gives one layer's number, then all layers'
        self.references.record(place, claim, statement)

    def _run(self, statement: Statement, claim: Claim) -> None:
        """Judge the sum so far in a row of a table, which no later sum adds."""
        claim.adds, meant = False, self.running.sum()
        if meant is None:
            return
        if self.running.is_wrong(claim, meant):
            self.correct(statement, claim, meant.exact)
        elif meant.meets(claim.written):
            self._equation(statement, claim, Number(meant.exact), claim.side, True, last=True)

    def _unjudged(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not judged, or ""."""
        if why := self.continued.why(statement, left, right, asides=asides):
            return why
        if carries := self.links.carries(left, right, asides):
            return carries
        part, stated = self.links.apart(left, right, asides)  # "2 × 4096² × 1.25 = 2 × 16757216 × 1.25"
        counts = isinstance(stated, Number) and is_whole(stated) and stated.value >= LEAST_COUNT
        if part is not left.expression and counts:
            left, right = left._replace(expression=part), right._replace(expression=stated)
        return self.doubts.why(statement, left, right, asides)

    def _several_times(self, statement: Statement, sides: Sides) -> None:
        """Judge a total that its line takes several times: "Layer total: 202.4M × 32 = 6.48B"."""
        first = sides[0].expression
        if is_bytes(statement) or not names_sum(statement.label):  # "Model parameters: 3B × 4 bytes"
            return
        if not (isinstance(first, Operation) and first.symbols == ("*",)):
            return
        one, count = first.parts
        if isinstance(one, Number) and one.value >= LEAST_TOTAL and isinstance(count, Number) and is_count(count):
            claim = lone(one, rounded=sides[0].loose)
            if any(exactly(self.so_far.at(place).stated).meets(claim.written) for place in self.so_far.free()):
                return  # "Total: 884,736 × 3" of three rows with that number
            if (found := self.implied.sum(statement, claim, judged=True)) is not None:
                self._sum_of(statement, claim, found)

    def _with_right_factor(self, statement: Statement, sides: Sides) -> Sides:
        """Return the sides with the number of one layer right, if a digit of it is wrong.

        Example: "7,057,872 × 12 layers = 85,054,464" below parts of 7,087,872.
        """
        first, number = sides[0].expression, sides[1].expression if len(sides) > 1 else None
        if isinstance(number, Operation) and set(number.symbols) <= ASIDES:
            number = number.parts[0]  # "= 85,054,464 (78.1%)"
        if not (isinstance(first, Operation) and first.symbols == ("*",) and isinstance(number, Number)):
            return sides
        one, count = sorted(first.parts, key=lambda part: isinstance(part, Number) and is_count(part))
        counted = isinstance(count, Number) and is_count(count) and count.value > 0 and statement.last > statement.line
        if not (isinstance(one, Number) and isinstance(count, Number) and counted and one.value >= LEAST_TOTAL):
            return sides
        meant = number.value / count.value
        if meant == one.value or not (is_whole(one) and is_typed_for(one, meant)):
            return sides
        if not (self.so_far.summed(exactly(meant)) or (self.quantities and self.quantities.of(meant))):
            return sides
        self.correct(statement, lone(one), meant)
        right = first._replace(parts=tuple(Number(meant) if part is one else part for part in first.parts))
        return [sides[0]._replace(expression=right), *sides[1:]]

    def _links(
        self, statement: Statement, claim: Claim, sides: Sides, pairs: list[tuple[Side, Side, bool]], *, asides: bool
    ) -> bool:
        """Judge neighbouring sides, and the number by the lines before it.

        Return whether these lines give exactly this number.
        """
        if self._restates(statement, claim, sides, pairs, asides=asides):
            return False
        pairs = [self._with_results(statement, claim, pair) for pair in pairs] if asides else pairs
        for number, (left, right, agree) in enumerate(pairs):
            one, other = (left.expression, right.expression) if agree else self.links.apart(left, right, asides)
            part, last = one is not left.expression, number == len(pairs) - 1
            self._equation(statement, claim, one, other, agree, last=last, part=part)
            summed = agree and right.expression.__class__ is Operation
            for addend, result in self._results(left, right, asides) if summed else ():
                self._equation(statement, claim, addend, result, True, last=False, part=True)
        if asides and (stated := mistyped_aside(sides[-1].expression)) is not None:
            self._equation(statement, claim, *stated, False, last=False)
        count = len(self.equations)
        self._imply(statement, claim, judged=claim.expression is None)
        return any(one.left == claim.stated for one in self.equations[count:])

    def _results(self, left: Side, right: Side, asides: bool) -> Iterator[tuple[Expression, Expression]]:
        """Yield the products of a sum that the next sum computes: "4·d² + 8·d² = 2.4M + 4.7M"."""
        for one, other in paired_parts(left.expression, right.expression) if is_sum(left.expression) else ():
            computed = isinstance(one, Operation) and isinstance(other, Number)
            if computed and self.readings.agree(Side(one), Side(other, right.loose), asides=asides):
                yield one, other

    def _with_results(
        self, statement: Statement, claim: Claim, pair: tuple[Side, Side, bool]
    ) -> tuple[Side, Side, bool]:
        """Judge the results in parentheses behind the products of a sum, which it may carry on.

        Example: "50257·768 (38,697,376) + 1024·768 (786,432) = 39,483,808".
        """
        left, right, agree = pair
        slips = [
            result
            for result in results_in(left.expression)
            if is_slip_of(result.number, self.readings.value(result.product, asides=True).exact)
        ]
        for result in slips:
            self._equation(statement, claim, result.product, result.number, False, last=False, part=True)
        stated = left._replace(expression=with_results(left.expression, slips))
        if agree or not slips or not self.readings.agree(stated, right, asides=True):
            return pair
        claim.carried = self.readings.value(stated.expression, asides=True).exact - claim.true
        return stated, right, True

    def _restates(
        self,
        statement: Statement,
        claim: Claim,
        sides: Sides,
        pairs: Sequence[tuple[Side, Side, bool]],
        *,
        asides: bool,
    ) -> bool:
        """Judge a number by the rounded one behind it, and return whether it is wrong.

        Examples: "Total: 326.5B ≈ 0.34T" of a list, "134,439,808 (~124M)" of the model.
        """
        aside = mistyped_aside(sides[-1].expression) if asides and not pairs else None
        if aside is not None:
            number, rounded = aside[0], Side(aside[1])
        elif len(pairs) == 1 and not pairs[0][2] and isinstance(pairs[0][0].expression, Number):
            number, rounded = pairs[0][0].expression, pairs[0][1]
        else:
            return False
        found, meant = self.implied.mistyped.restated(number, rounded), self.implied.mistyped.total(number, rounded)
        if found is None and meant is None:
            return False
        claim.side, claim.stated = number, number.value
        if found is not None:
            self._sum_of(statement, claim, found)
        elif meant is not None:
            self.correct(statement, claim, meant)
        return True

    def _before(
        self, statement: Statement, sides: Sides, pairs: Sequence[tuple[Side, Side, bool]], asides: bool
    ) -> None:
        """Judge the sides before two that are not judged: "2 × 3 = 7 bytes ≈ 27 GB"."""
        known = statement.line in self.judged
        judged = [pair for pair in pairs if pair[2] or not self._unjudged(statement, *pair[:2], asides)]
        claim = self._claim(sides, asides=asides, right=False)
        for left, right, agree in judged:
            one, other = (left.expression, right.expression) if agree else self.links.apart(left, right, asides)
            self._equation(statement, claim, one, other, agree, last=False)
        if not known and all(agree for *_, agree in judged):
            self.judged.discard(statement.line)  # what follows is judged apart

    def _imply(self, statement: Statement, claim: Claim, *, judged: bool) -> None:
        """Judge a number by the lines before it: their sum, or one of them times a count."""
        times = times_before(statement) or layers_of(statement.label) or layers_of(statement.plain.partition("=")[0])
        place = self.multiples.of(times, statement, claim) if times and judged else None
        exact = True
        if judged and not times and (counted := self.multiples.counted(statement, claim)):
            times, place, exact = counted  # "Block 6 つ: 7,087,104"
        if times and place is not None:
            self._implied_product(times, place, statement, claim, adds=exact)
            return
        if times and judged and not names_sum(statement.label):
            return
        if claim.expression is None and self.so_far.place:
            judged = judged and is_total(statement) and begins_line(statement) and is_only(statement)
            judged = judged and not is_partly_read(statement)
            if judged or claim.stated >= LEAST_REFERENCE:
                self._implied_sum(statement, claim, judged=judged)

    def refuse(self, place: int, why: str) -> None:
        """Skip a statement that cannot be computed, and record the reason."""
        statement = self.derivation.statements[place]
        self.claims[place:] = [None]
        self.refused.append((statement.line, why))
        self.unread.append(Unread(statement.line, statement.text, why))

    def _implied_sum(self, statement: Statement, claim: Claim, *, judged: bool) -> None:
        """Judge a lone number as the sum of the last lines above it, if that fits.

        A total that is `judged` must equal the sum of all lines. If it is only near that sum, it is
        wrong.
        """
        found = self.implied.sum(statement, claim, judged=judged)
        if found is not None:
            self._sum_of(statement, claim, found)
            return
        if (slip := self.implied.mistyped.addend(claim) if judged else None) is not None:
            wrong, line = self.so_far.at(slip.place), self.derivation.statements[slip.place]
            wrong.true = slip.meant
            wrong.match = self.matches.of(wrong, line)
            self.correct(line, wrong, slip.meant)
            self._sum_of(statement, claim, Sum(slip.places, self.so_far.sum(slip.places), fits=True))
            return
        place = self.so_far.place - 1
        last = self.claims[place]
        meant = said(statement, claim, None if last is None else (self.derivation.statements[place], last))
        if meant is not None:
            self.correct(statement, claim, meant)

    def _implied_product(
        self, times: int, place: int, statement: Statement, claim: Claim, *, adds: bool = True
    ) -> None:
        """Judge the number after "× 12 layers" as the number of a line above, times 12."""
        one = self.so_far.at(place)
        product = Operation(("*",), (Number(Fraction(times)), one.side))
        if adds:
            self.so_far.use(place)
            term = times_of(Term(Fraction(times)), one.term or Term(one.true))
            claim.term = labelled(term, (statement.label,), statement.line)
        claim.true = one.true * times
        claim.right = self.readings.agree(Side(product), Side(claim.side, claim.rounded), asides=False)
        ways = (one.written.times(exactly(times)), exactly(claim.true))  # as written, or what that rounds
        claim.right = claim.right or (one.is_vague and any(way.meets(claim.written) for way in ways))
        claim.right = claim.right and self._goes_on(one, times, claim)
        claim.match = self.matches.of(claim, statement)
        self._equation(statement, claim, product, claim.side, claim.right, last=True)

    def _goes_on(self, one: Claim, times: int, claim: Claim) -> bool:
        """Return whether a rounded number goes on from a rounded one, or from what that rounds.

        Example: "12 blocks: 85.3M" of 7.1M goes on neither from that nor from 7,079,424.
        """
        number = claim.side
        if not (isinstance(number, Number) and number.rounded and one.is_vague and one.true != one.stated):
            return True
        low, high = sorted((one.true * times, one.stated * times))
        spread = number.unit + (one.term.spread * times if one.term else 0)  # its addends may be rounded
        return low - spread < claim.stated < high + spread

    def _is_said(self, statement: Statement, claim: Claim) -> bool:
        """Return whether an equation of the line has its number, or the line has no columns."""
        if "|" not in statement.plain:
            return True
        same = (one for one in self.equations if one.line == statement.line)
        return any(claim.written.low <= side <= claim.written.high for one in same for side in (one.left, one.right))

    def _alone(self, statement: Statement, claim: Claim) -> None:
        """Record a lone labelled number as right if the model has that number for the label."""
        if claim.defines:
            return
        if (part := self.implied.part_of(statement, claim)) is not None:
            self.correct(statement, claim, part)
            return
        claim.match = self.matches.lone(claim, statement)
        if claim.match is not None:
            self.state(statement, claim, claim.match)
        else:
            self._typed(statement, claim)

    def _typed(self, statement: Statement, claim: Claim) -> None:
        """Record a lone labelled number as wrong if it is the model's but for one digit.

        A number that is computed above is meant as it stands: "61 × 0.19B = 11.6B".
        """
        meant = self.matches.mistyped(claim, statement)
        if meant is not None and not any(one.correct and one.right == claim.stated for one in self.equations):
            claim.match = meant
            self.correct(statement, claim, Fraction(meant.parameters))


def _is_passed_over(pairs: Sequence[tuple[Side, Side, bool]], number: int) -> bool:
    """Return whether the side before a product of numbers is the side behind it.

    Example: "2·(d² + d·d_ff) ≈ 2·(86.8M + 45.1M) ≈ 124M" for 16.8M.
    """
    left, right, _ = pairs[number]
    again = any(one is left and agree for one, _, agree in pairs[number + 1 : number + 2])
    sides = (left.expression, right.expression)
    return again and all(isinstance(side, Operation) for side in sides) and not has_names(right.expression)
