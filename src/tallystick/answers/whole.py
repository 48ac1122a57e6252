"""Which statement of a derivation is its total: found by how its numbers refer to each other, before any word."""

from __future__ import annotations

from math import log2

from tallystick.answers.claims import Claim, is_total, measures
from tallystick.answers.equations import Judge
from tallystick.answers.labels import tags_of
from tallystick.derivation import Statement

FAR = 2  # a sum of no earlier lines that misses the model by more than a half of it is not meant as the whole


def whole(judge: Judge) -> int | None:
    """The statement that is the total of the text, None where there is none.

    A total is a sum, or says that it is one, and no other sum goes on from it. Of several, as of two models or of
    a model with and without its head, it is the one nearest to the model; without a model the last that says so.
    """
    statements = judge.derivation.statements
    found = {
        place: claim
        for place, (statement, claim) in enumerate(zip(statements, judge.claims, strict=True))
        if claim is not None
        and not measures(statement)
        and claim.stated > 0
        and _may_be(judge, place, statement, claim)
    }
    if not found:
        return None
    if judge.quantities is None:
        named = [place for place in found if is_total(statements[place])]
        return (named or list(found))[-1]
    total = judge.quantities.total

    def rank(place: int) -> tuple[float, bool, int]:
        away = abs(log2(found[place].stated) - log2(total)) if total else 0.0
        return round(away, 2), not _adds(found[place]), -place

    return min(found, key=rank)


def _may_be(judge: Judge, place: int, statement: Statement, claim: Claim) -> bool:
    about = tags_of(statement.label)
    is_model = judge.quantities is not None and claim.stated == judge.quantities.total
    if _part(judge, claim):
        return is_model and _adds(claim)  # "124,439,808 tied; untied: 124,439,808 + 38,597,376"
    if is_model:
        return True
    if is_total(statement):
        return about <= {"all", "block"} or (_adds(claim) and "one" not in about)
    return _adds(claim) and "one" not in about and (_collects(judge, place) or _near(judge, claim))


def _collects(judge: Judge, place: int) -> bool:
    """Whether a sum goes on from two earlier lines at least."""
    return sum(place in claim.users for claim in judge.claims if claim is not None) > 1


def _near(judge: Judge, claim: Claim) -> bool:
    total = judge.quantities.total if judge.quantities else 0
    return bool(total) and abs(claim.stated - total) * FAR < total


def _adds(claim: Claim) -> bool:
    return claim.term is not None and len(claim.term.parts) > 1


def _part(judge: Judge, claim: Claim) -> bool:
    """Whether a larger number of parameters goes on from it: what restates it, or says its bytes, is none."""
    users = ((judge.derivation.statements[place], judge.so_far.at(place)) for place in claim.users)
    return any(user.stated != claim.stated and not measures(statement) for statement, user in users)
