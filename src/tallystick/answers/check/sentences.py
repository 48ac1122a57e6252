"""Judge the numbers in sentences by the model: "attention has 67,108,864 weights"."""

from __future__ import annotations

from fractions import Fraction

from tallystick.answers.check.claims import LEAST_COUNT, Claim, is_total, is_whole, kind_of
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number, exactly


def judge_sentences(judge: Judge) -> None:
    """Record the numbers written to their last digit that the model has, or has but for a digit."""
    quantities = judge.quantities
    if quantities is None:
        return
    judged = {(one.line, Fraction(side)) for one in judge.equations for side in (one.left, one.right)}
    for statement in judge.derivation.prose:
        number = statement.sides[0].expression
        if not isinstance(number, Number) or not is_whole(number) or number.value < LEAST_COUNT:
            continue
        if (statement.line, number.value) in judged or kind_of(statement):
            continue
        judged.add((statement.line, number.value))
        claim = Claim(number.value, number.value, None, number, written=exactly(number.value))
        claim.match = quantities.best(number.value, statement.labels, matched=judge.matches.matched)
        if claim.match is not None:
            judge.matches.matched.add(claim.match)
            judge.state(statement, claim, claim.match)
        elif meant := quantities.mistyped(number.value, statement.labels, total=is_total(statement)):
            claim.match = meant
            judge.correct(statement, claim, Fraction(meant.parameters))
