"""Account for the difference between a text's total and the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.check.claims import Claim, is_of_adapters, is_whole
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.terms import Term
from tallystick.answers.check.whole.coverage import DOUBTFUL, LEAST_SHARE, Omission, omissions, without_one
from tallystick.answers.reconcile.claimed_count import MOST
from tallystick.answers.reconcile.conventions import listed
from tallystick.answers.reconcile.reconcile import Step, reconcile
from tallystick.core.ledger import Ledger

MOST_ROUNDED = Fraction(1, 20)  # of a total, for zeros that are not all counted: 200,000,000
MOST_LEFT_OUT = 12  # parts of which some together may be what a convention leaves out
NEARER = 10  # times, for the result of an equation whose sides differ
_VOCABULARY = ("token_embedding", "head")
_WITHOUT = "without "
_TOKEN = f"{_WITHOUT}token embedding"
_TIED = "as if the output head were tied"
_ROUNDED = ("rounded-further", "cut-off")  # conventions of writing, not of counting


class Account(NamedTuple):
    """The corrections that lead from a text's total to the model's, in parameters."""

    omissions: tuple[Omission, ...] = ()
    arithmetic: Fraction = Fraction(0)
    rounding: Fraction = Fraction(0)
    unexplained: Fraction = Fraction(0)
    convention: str | None = None  # under which the corrected total is the model's


def account_of(claim: Claim | None, judge: Judge, ledger: Ledger | None) -> Account:
    """Return the account of a text's total.

    Its terms explain the difference if the model has them all. Else its rounding may, or a
    convention of counting.

    Args:
        claim: the total; None if the text states none.
        judge: the statements of the text, judged.
        ledger: the model; None without one.
    """
    if claim is None:
        return Account()
    if ledger is not None and not claim.right and _is_result(claim, ledger.total):
        claim = replace(claim, true=claim.stated, term=None, right=True, carried=Fraction(0))
    arithmetic = -claim.error
    rounding = claim.true - claim.stated - arithmetic
    if ledger is None or judge.quantities is None:
        return Account((), arithmetic, rounding)
    off = ledger.total - claim.stated - arithmetic
    steps = _steps(claim.stated + arithmetic, ledger, judge)
    missing = _missing(claim, judge.quantities)
    counted = tuple(map(_counted, steps or ()))
    if steps is not None and abs(off - _sum(counted)) > MOST_ROUNDED * claim.stated:
        steps = None
    if missing is None or any(one.cause in DOUBTFUL for one in missing):
        within = claim.written.low <= ledger.total <= claim.written.high
        if within or (steps is not None and all(step.convention in _ROUNDED for step in steps)):
            missing = ()
            rounding = off
        elif steps is not None and (missing is None or is_whole(claim.side)) and _sure(steps, claim):
            missing = counted
            rounding = off - _sum(missing)
    else:
        if steps is not None and missing and not _leaves_out(steps, missing):
            steps = None
        if not missing or claim.term is None or not claim.term.parts:
            rounding = off - _sum(missing)
    return Account(
        missing or (),
        arithmetic,
        rounding,
        off - rounding - _sum(missing or ()),
        None if steps is None else _convention(steps, ledger, missing or ()),
    )


def _is_result(claim: Claim, total: int) -> bool:
    """Return whether the result of a wrong equation is far nearer to the model than its addends.

    Then the addends are mistyped: "a + b = 108,853,248" where b was meant times 12.
    """
    return abs(total - claim.stated) * NEARER < abs(total - claim.true)


def _missing(claim: Claim, quantities: Quantities) -> tuple[Omission, ...] | None:
    """Return the corrections that the terms of a total need, or None if none of them is known."""
    term = claim.term or Term(claim.true)
    # The number of a lone total may be rounded too: "Total: ~6.7B".
    lone = claim.expression is None and not term.parts and claim.is_rounded
    spread = (claim.written.high - claim.written.low) / 2 if lone else term.spread
    if abs(quantities.total - term.value) <= spread:  # terms are rounded, and none is left out
        return ()
    known = None if lone else omissions(term, quantities)
    part = without_one(term.value, spread, quantities) if known is None else None
    return known if part is None else (part,)


def _sure(steps: Sequence[Step], claim: Claim) -> bool:
    """Return whether the rounding of a total is small next to each step that explains it."""
    width = claim.written.high - claim.written.low
    return all(width * LEAST_SHARE <= 2 * abs(step.parameters) for step in steps)


def _sum(missing: Sequence[Omission]) -> int:
    return sum(omission.parameters for omission in missing)


def _leaves_out(steps: Sequence[Step], missing: Sequence[Omission]) -> bool:
    """Return whether a text leaves out what a convention does; else only its rounded total fits.

    109M of BERT without its biases and norms may be one without positions as well.
    """
    sums = {0}
    for omission in missing[:MOST_LEFT_OUT]:
        sums |= {one + omission.parameters for one in sums} if omission.cause == "left out" else set()
    return all(-step.parameters in sums for step in steps if step.parameters < 0 and step.convention not in _ROUNDED)


def _counted(step: Step) -> Omission:
    """Return a step of a convention as a correction of the total."""
    cause = "left out" if step.parameters < 0 else "counted twice" if "twice" in step.what else "another size"
    return Omission(step.what.removeprefix(_WITHOUT), -step.parameters, (), cause, None)


def _steps(total: Fraction, ledger: Ledger, judge: Judge) -> tuple[Step, ...] | None:
    """Return the steps of a convention under which the model has a total, or None.

    Adapters of some rank can explain nearly any number, so they count only if the text mentions
    adapters.
    """
    if total.denominator != 1 or total <= 0 or total == ledger.total or total > MOST:
        return None
    found = reconcile(ledger, int(total))
    if not found.explained:
        return None
    adapted = any(map(is_of_adapters, judge.derivation.statements))
    ways = (way.steps for way in found.explanations)
    return next((steps for steps in ways if adapted or not _has_adapters(steps)), None)


def _convention(steps: Sequence[Step], ledger: Ledger, missing: Sequence[Omission]) -> str:
    """Return the words for a convention, such as "with the tied head counted twice"."""
    left_out = {omission.names[0] for omission in missing if omission.cause == "left out" and omission.names}
    token, head = ({entry.name for entry in ledger.parameters if entry.role == role} for role in _VOCABULARY)
    tied = not left_out.isdisjoint(head) and left_out.isdisjoint(token)
    return listed([what for step in steps for what in _words(step, tied=tied)])


def _words(step: Step, *, tied: bool) -> tuple[str, ...]:
    """Return the words for a step of a convention.

    A head has as many parameters as the token embedding. If the text left out the head, these
    words do not say that it left out the embedding.
    """
    if not tied or not step.what.startswith(_TOKEN):
        return (step.what,)
    rest = step.what.removeprefix(_TOKEN).removeprefix(" and ")
    return (_TIED, *([f"{_WITHOUT}{rest}"] if rest else []))


def _has_adapters(steps: Sequence[Step]) -> bool:
    return any(step.convention.startswith("adapters") for step in steps)
