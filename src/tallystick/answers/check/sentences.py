"""Judge exact numbers without a formula by the model: "attention has 67,108,864 weights"."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tallystick.answers.check.claims import LEAST_COUNT, Claim, is_total, is_whole, kind_of, lone
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number
from tallystick.derivations.statements import Statement


def judge_sentences(judge: Judge) -> None:
    """Record the numbers written to their last digit that the model has, or has but for a digit.

    They stand in sentences, or behind words that name nothing. What an equation or a sum has is
    judged there.
    """
    quantities, matched = judge.quantities, judge.matches.matched
    if quantities is None or not (said := list(_said(judge))):
        return
    judged = judge.numbers()
    known = {number for _, number in judged}
    for statement, claim in said:
        if (statement.line, claim.stated) in judged or kind_of(statement):
            continue
        judged.add((statement.line, claim.stated))
        claim.match = quantities.best(claim.stated, statement.labels, matched=matched)
        if claim.match is not None:
            matched.add(claim.match)
            judge.state(statement, claim, claim.match)
            continue
        meant = quantities.mistyped(claim.stated, statement.labels, total=is_total(statement), certain=True)
        if meant is not None and claim.stated not in known and not claim.used:
            claim.match = meant
            judge.correct(statement, claim, Fraction(meant.parameters))


def _said(judge: Judge) -> Iterator[tuple[Statement, Claim]]:
    """Yield the long numbers that stand alone, on a line or in a sentence."""
    alone = set[tuple[int, Fraction]]()
    for statement, claim in zip(judge.derivation.statements, judge.claims, strict=True):
        if claim is None or claim.defines or claim.expression is not None:
            continue
        if claim.stated >= LEAST_COUNT and is_whole(claim.side):
            alone.add((statement.line, claim.stated))
            if not statement.column:
                yield statement, claim
    for statement in judge.derivation.prose:
        number = statement.sides[0].expression
        long = isinstance(number, Number) and number.value >= LEAST_COUNT and is_whole(number)
        if isinstance(number, Number) and long and (statement.line, number.value) not in alone:
            yield statement, lone(number)
