"""Find a number that repeats a computed one with a digit wrong, or one that is computed wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.chain.sides import numbers_in
from tallystick.answers.check.claims import Claim, is_whole, kind_of, lone
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import Number
from tallystick.derivations.statements import Statement

LEAST_COPIED = 1_000_000  # a shorter number is another one but for a digit by chance
LEAST_DIGITS = 5  # before its zeros: 220,000,000 does not copy 200,000,000


class Copied(NamedTuple):
    """A number without a formula, and the computed one that it is but for a digit."""

    statement: Statement
    claim: Claim
    meant: Fraction


def judge_copies(judge: Judge) -> None:
    """Record the numbers without a formula, also in sentences, that another line contradicts.

    A number that stands twice is meant so. The last digit may differ: something small was added.
    """
    found = list(_lone(judge))
    times = Counter(claim.stated for _, claim in found)
    once = [(statement, claim) for statement, claim in found if times[claim.stated] == 1]
    for statement, claim, meant in [*_copied(judge, once), *_announced(judge, once)]:
        judge.correct(statement, claim, meant)


def _copied(judge: Judge, lone: Sequence[tuple[Statement, Claim]]) -> Iterator[Copied]:
    computed: dict[str, set[Fraction]] = {}
    for claim in judge.claims:
        if claim is not None and claim.expression is not None and claim.right and _is_long(claim):
            for mask in _masks(claim.stated):
                computed.setdefault(mask, set()).add(claim.stated)
    if not computed:
        return
    products = (claim.expression for claim in judge.claims if claim is not None and claim.expression is not None)
    added = (number.value for product in products for number in numbers_in(product))
    known = {*(number for _, number in judge.numbers()), *added}  # wrong ones too
    for statement, claim in lone:
        if claim.stated in known or len(str(claim.stated).rstrip("0")) < LEAST_DIGITS:
            continue
        meant = set[Fraction]().union(*(computed.get(mask, ()) for mask in _masks(claim.stated)))
        if len(meant) == 1:
            yield Copied(statement, claim, meant.pop())


def _announced(judge: Judge, lone: Sequence[tuple[Statement, Claim]]) -> Iterator[Copied]:
    """Yield the numbers without a formula that a line below computes, wrongly.

    Example: "Each layer: 3,540,672" above "884,736 + 2,654,208 + 1,152 = 3,540,672".
    """
    wrong = {Fraction(one.right): one for one in reversed(judge.equations) if not one.correct}
    for statement, claim in lone:
        below = wrong.get(claim.stated)
        known = judge.quantities is not None and judge.quantities.of(claim.stated)
        if below is not None and below.line > statement.line and below.should_be is not None and not known:
            yield Copied(statement, claim, Fraction(below.should_be))


def _lone(judge: Judge) -> Iterator[tuple[Statement, Claim]]:
    """Yield the long numbers without a formula that no equation has judged."""
    judged = judge.numbers()
    found = set[tuple[int, Fraction]]()
    stated = zip(judge.derivation.statements, judge.claims, strict=True)
    said = ((line, _said(line)) for line in judge.derivation.prose)
    for statement, claim in (*stated, *said):
        if claim is None or claim.expression is not None or not _is_long(claim) or kind_of(statement):
            continue
        key = statement.line, claim.stated
        if key not in judged and key not in found:
            found.add(key)
            yield statement, claim


def _said(statement: Statement) -> Claim | None:
    side = statement.sides[0].expression
    return lone(side) if isinstance(side, Number) else None


def _is_long(claim: Claim) -> bool:
    return is_whole(claim.side) and claim.stated.numerator >= LEAST_COPIED  # much faster than the fraction


def _masks(number: Fraction) -> Iterator[str]:
    """Yield forms of a number that it shares with those a slip away.

    Each digit but the last is hidden in turn, then each two neighbouring ones are sorted.
    """
    digits = str(number)
    for place in range(len(digits) - 1):
        yield f"{digits[:place]}*{digits[place + 1 :]}"
        yield f"{digits[:place]}<{''.join(sorted(digits[place : place + 2]))}>{digits[place + 2 :]}"
