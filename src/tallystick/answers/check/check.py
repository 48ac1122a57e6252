"""Check a derivation: wrong equations, what each number is, and what the total leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log2
from typing import Any

from tallystick.answers.check.claims import Equation, as_number
from tallystick.answers.check.copied import judge_copies
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.model.quantities import Quantities
from tallystick.answers.check.roundings import judge_roundings
from tallystick.answers.check.sentences import judge_sentences
from tallystick.answers.check.shares import judge_shares
from tallystick.answers.check.tables import judge_tables
from tallystick.answers.check.whole.account import account_of
from tallystick.answers.check.whole.coverage import Omission
from tallystick.answers.check.whole.total import whole
from tallystick.core.budget import OverBudget
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger
from tallystick.derivations.statements import Derivation, Unread
from tallystick.errors import BadInput


@dataclass(frozen=True, repr=False)
class Check(Displayed):
    """The verdict on a derivation: its equations, its total, and the corrections of the total.

    ``total_claimed + arithmetic + rounding + unexplained`` plus the parameters of all `omissions`
    equals `total_true`.

    >>> import tallystick
    >>> answer = tallystick.check("Token embedding: 50257 × 768 = 38,596,416", against="gpt2")
    >>> answer.correct, answer.equations[0].should_be
    (False, 38597376)
    """

    source: str
    against: str | None
    equations: tuple[Equation, ...]
    omissions: tuple[Omission, ...]
    total_line: int | None
    total_claimed: int | float | None  # None if the text states no total
    total_true: int | None  # None without a model
    arithmetic: int | float = 0  # correction of arithmetic errors in the total
    rounding: int | float = 0  # correction of the rounding of the stated total
    unexplained: int | float = 0
    unread: tuple[Unread, ...] = ()
    convention: str | None = None  # convention under which the corrected total is the model's
    several_totals: tuple[int, ...] = ()  # lines of totals of different models, if there is no single one
    lines: tuple[str, ...] = field(default=(), repr=False)  # of the text, as written; not in the JSON

    @property
    def correct(self) -> bool:
        """Whether every equation is right and the total equals the model's."""
        return all(equation.correct for equation in self.equations) and not (
            self.arithmetic or self.unexplained or self.omissions
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick check``: keys may be added, but never renamed."""
        return {
            "source": self.source,
            "against": self.against,
            "correct": self.correct,
            "equations": [{**vars(equation), "names": list(equation.names)} for equation in self.equations],
            "omissions": [omission.to_dict() for omission in self.omissions],
            "total_line": self.total_line,
            "total_claimed": self.total_claimed,
            "total_true": self.total_true,
            "arithmetic": self.arithmetic,
            "rounding": self.rounding,
            "unexplained": self.unexplained,
            "unread": [unread._asdict() for unread in self.unread],
            "convention": self.convention,
            "several_totals": list(self.several_totals),
        }


def check(derivation: Derivation, ledger: Ledger | None, constants: Mapping[str, int]) -> Check:
    """Judge every equation of a derivation, and its total.

    Args:
        derivation: the statements of a text.
        ledger: the model that the text describes; None judges the arithmetic alone.
        constants: values of the config's keys, under each name that the text may use.

    Raises:
        BadInput: if the computation exceeds its budget, or no statement can be computed.
    """
    judge = Judge(derivation, Quantities(ledger) if ledger is not None else None, constants)
    for place, statement in enumerate(derivation.statements):
        try:
            judge.read(place)
        except OverBudget as error:
            raise BadInput(f"{derivation.source}, line {statement.line}: {error}", code=error.code) from None
        except BadInput as error:
            judge.refuse(place, str(error))
    judge.close(len(derivation.statements))
    judge_copies(judge)
    judge_sentences(judge)
    judge_roundings(judge)
    if judge.refused and not judge.equations:
        raise BadInput(f"{derivation.source}, line {judge.refused[0][0]}: {judge.refused[0][1]}", code="too-large")
    return _answer(judge, ledger)


def nearest(answers: Sequence[Check]) -> Check:
    """Return the answer whose total is nearest to its model's.

    The answers judge one derivation against several models.
    """

    def away(answer: Check) -> float:
        if not answer.total_claimed or not answer.total_true:
            return inf
        return abs(log2(answer.total_claimed) - log2(answer.total_true))

    return min(answers, key=away)


def _answer(judge: Judge, ledger: Ledger | None) -> Check:
    """Return the verdict on the whole derivation, given its judged equations."""
    place, several = whole(judge)
    claim = None if place is None else judge.claims[place]
    account = account_of(claim, judge, ledger)
    judge_shares(judge)
    judge_tables(judge)  # what a table's columns say changes no total
    return Check(
        source=judge.derivation.source,
        against=None if ledger is None else ledger.source,
        equations=tuple(sorted(judge.equations, key=lambda equation: equation.line)),
        omissions=account.omissions,
        total_line=None if place is None else judge.derivation.statements[place].line,
        total_claimed=None if claim is None else as_number(claim.stated),
        total_true=None if ledger is None else ledger.total,
        arithmetic=as_number(account.arithmetic),
        rounding=as_number(account.rounding),
        unexplained=as_number(account.unexplained),
        unread=tuple(sorted(judge.unread)),
        convention=account.convention,
        several_totals=tuple(judge.derivation.statements[one].line for one in several),
        lines=judge.derivation.lines,
    )
