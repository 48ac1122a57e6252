"""Judge the numbers in sentences by the model: "attention has 67,108,864 weights"."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tallystick.answers.check.claims import LEAST_COUNT, Claim, is_total, is_whole, kind_of
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number, exactly
from tallystick.derivations.statements import Statement


def judge_sentences(judge: Judge) -> None:
    """Record the numbers written to their last digit that the model has, or has but for a digit."""
    quantities, matched = judge.quantities, judge.matches.matched
    said = list(_said(judge)) if quantities is not None else []
    if quantities is None or not said:
        return
    judged = {(one.line, side) for one in judge.equations for side in (one.left, one.right)}
    for statement, number in said:
        key = statement.line, int(number.value)
        if key in judged or kind_of(statement):
            continue
        judged.add(key)
        claim = Claim(number.value, number.value, None, number, written=exactly(number.value))
        claim.match = quantities.best(number.value, statement.labels, matched=matched)
        if claim.match is not None:
            matched.add(claim.match)
            judge.state(statement, claim, claim.match)
        elif meant := quantities.mistyped(number.value, statement.labels, total=is_total(statement)):
            claim.match = meant
            judge.correct(statement, claim, Fraction(meant.parameters))


def _said(judge: Judge) -> Iterator[tuple[Statement, Number]]:
    """Yield the long numbers in sentences."""
    for statement in judge.derivation.prose:
        number = statement.sides[0].expression
        if isinstance(number, Number) and number.value >= LEAST_COUNT and is_whole(number):
            yield statement, number
