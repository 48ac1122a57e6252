"""The verdicts so far: each equation with its sides, and the value of each statement, corrected."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tallystick.answers.check.by_parts import ByParts
from tallystick.answers.check.chain.readings import Sides
from tallystick.answers.check.chain.sides import PERCENT, computes, is_share, longest, most_precise
from tallystick.answers.check.chain.variables import Variables
from tallystick.answers.check.claims import Claim, Equation, as_number, is_whole
from tallystick.answers.check.earlier.addends import Addends, Sum
from tallystick.answers.check.earlier.links import Links
from tallystick.answers.check.earlier.references import References
from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.matches import Matches
from tallystick.answers.check.model.each import each_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.model.quantity import Quantity
from tallystick.answers.check.terms import Term, labelled, term_of, total
from tallystick.answers.check.terms import times as times_of
from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Value, evaluate, is_sum
from tallystick.derivations.statements import Derivation, Statement

FEW = 10  # sides that differ by more than 1/10 count different things


class Verdicts:
    """Records the verdict on each equation, and gives its statement's number a term."""

    def __init__(self, derivation: Derivation, quantities: Quantities | None, constants: Mapping[str, int]) -> None:
        self.derivation = derivation
        self.quantities = quantities
        self.variables = Variables(constants, derivation.statements)
        self.readings = self.variables.readings
        self.so_far = Addends()
        self.claims = self.so_far.claims
        self.references = References(derivation, self.so_far, self.variables)
        self.links = Links(self.readings, self.references)
        self.matches = Matches(quantities)
        self.by_parts = ByParts(quantities)
        self.equations: list[Equation] = []
        self.judged: set[int] = set()  # lines of the equations

    def numbers(self) -> set[tuple[int, Fraction | float]]:
        """Return the numbers of the equations so far, each behind its line."""
        return {(one.line, side) for one in self.equations for side in (one.left, one.right)}

    def _equation(
        self,
        statement: Statement,
        claim: Claim,
        left: Expression,
        right: Expression,
        agree: bool,
        *,
        last: bool,
        part: bool = False,  # two addends or factors of the sides
    ) -> None:
        one, other = self.readings.value(left, claim.asides).exact, self.readings.value(right, claim.asides).exact
        computed = isinstance(right, Operation) and isinstance(left, Number)  # "38,597,376 = 50257 × 768"
        mistyped = isinstance(left, Operation) and claim.true == other and not part
        right_one = other if computed or mistyped else one
        self.judged.add(statement.line)
        agree = agree or one == other
        if not agree:
            self.links.record(left, other)
        # "1,536 + 1,536 = 3,072 + 1,769,472 = …"
        running = len(statement.sides) > 2 and abs(other - claim.true) > abs(claim.true) / FEW
        if running and agree and is_sum(left) and abs(one - other) > abs(other) / FEW:
            return  # the first addends of a sum, on the way to it
        if part or running:
            match = self.matches.addend(one, statement) if agree else None
        else:
            match = self.by_parts.of(claim, statement)  # what the whole line counts
        if match is not None and self.quantities is not None:
            match = each_of(match, statement.plain, statement.labels, self.quantities)
        percent = "%" in statement.plain and is_share(right)
        if percent:
            one, other, right_one = (number / PERCENT for number in (one, other, right_one))
        self.equations.append(
            Equation(
                statement.line,
                statement.last,
                statement.text,
                as_number(one),
                as_number(other),
                agree,
                None if agree else as_number(right_one),
                as_number(claim.carried if last and agree else Fraction(0)),
                match.what if match else None,
                match.names if match else (),
                self.matches.misfit(claim, statement) if last else None,
                statement.plain,
                percent,
            )
        )

    def correct(self, statement: Statement, claim: Claim, meant: Fraction) -> None:
        """Record a number without a formula as mistyped."""
        claim.true, claim.right = meant, False
        claim.term = labelled(Term(meant), (statement.label,), statement.line)
        self._equation(statement, claim, Number(meant), claim.side, False, last=True)

    def state(self, statement: Statement, claim: Claim, quantity: Quantity) -> None:
        """Record a number without a formula as a quantity of the model."""
        self._equation(statement, claim, Number(Fraction(quantity.parameters)), claim.side, True, last=True)

    def _sum_of(self, statement: Statement, claim: Claim, found: Sum) -> None:
        """Record a number as the sum of earlier lines, right or wrong."""
        places, sums, fits, counts = found
        self.so_far.use(*places)
        terms = self.so_far.terms(places)
        if counts:
            terms = [times_of(Term(Fraction(count)), term) for count, term in zip(counts, terms, strict=True)]
        claim.term = labelled(total(terms), (statement.label,), statement.line)
        claim.true, claim.right = claim.term.value, fits
        claim.match = self.matches.of(claim, statement)
        # If only the corrected lines add up to it, the error above is not carried.
        goes_on = sums.meets(claim.written)
        shown = claim.true if fits and not goes_on else sums.exact
        if fits and goes_on:
            claim.carried = sum((self.so_far.at(one).error for one in places), Fraction(0))
        self._equation(statement, claim, Number(shown), claim.side, fits, last=True)

    def _claim(self, sides: Sides, *, asides: bool, right: bool) -> Claim:
        exact = [side for side in reversed(sides) if is_whole(side.expression)]
        chosen = next((side for side in exact if not side.loose), longest(exact) or most_precise(sides))
        side = chosen.expression
        if isinstance(side, Operation) and not computes(side, asides=asides):
            side = side.parts[0]
        stated = self.readings.value(side, asides).exact
        computed = next((one.expression for one in sides if computes(one.expression, asides=asides)), None)
        given = sides[0].expression if isinstance(sides[0].expression, Name) and not right else side
        meant = computed or given
        true = evaluate(meant, self.variables.true, asides=asides, replaced=self.references.corrected).exact
        carried = self.readings.value(meant, asides).exact - true
        if not right and self.quantities and self.quantities.of(stated) and not self.quantities.of(true):
            true = stated  # the model has the result: a number on the other side is mistyped
        return Claim(stated, true, computed, side, asides, rounded=chosen.loose, right=right, carried=carried)

    def _term(self, claim: Claim, statement: Statement) -> Term:
        def value(node: Expression) -> Value:
            return evaluate(node, self.variables.true, asides=claim.asides, replaced=self.references.corrected)

        if claim.expression is None:
            before = self.references.stated_before(claim, statement)
            if before is not None:
                self.so_far.use(before)
            found = (self.so_far.at(before).term if before is not None else None) or _lone(claim)
        else:
            self.references.about = tags_of(statement.label)
            found = term_of(claim.expression, value, self.references.term, asides=claim.asides)
        if found.value != claim.true:  # the result is right, but a number in the product is wrong
            found = Term(claim.true)
        return labelled(found, (statement.label or statement.name, *statement.labels[1:]), statement.line)


def _lone(claim: Claim) -> Term:
    """Return the term of a number that is not computed, with the spread of its rounding."""
    low, high = claim.written.low, claim.written.high
    return Term(claim.true) if low is high else Term(claim.true, (high - low) / 2)
