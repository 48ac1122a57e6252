"""Which statement of a derivation is its total: found by how its numbers refer to each other, before any word."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from tallystick.answers.claims import Claim, is_total, measures
from tallystick.answers.equations import Judge
from tallystick.answers.labels import KINDS, tags_of
from tallystick.answers.readings import names_in, symbolic
from tallystick.derivation import TOTAL, Statement

FAR = 2  # a sum of no earlier lines that misses the model by more than a half of it is not meant as the whole


def whole(judge: Judge) -> int | None:
    """The statement that is the total of the text, None where there is none.

    A total is a sum, or says that it is one, and no other sum goes on from it. Of several, as of two models or of
    a model with and without its head, it is the one nearest to the model; without a model the last that says so.
    """
    statements = judge.derivation.statements
    collected = _collected(judge)
    found = {
        place: claim
        for place, (statement, claim) in enumerate(zip(statements, judge.claims, strict=True))
        if claim is not None
        and not measures(statement)
        and claim.stated > 0
        and not (symbolic(claim.side) and judge.origin.keys().isdisjoint(names_in(claim.side)))
        and _may_be(judge, place, statement, claim, collected)
    }
    if not found:
        return _last_sum(judge)
    if judge.quantities is None:
        named = [place for place in found if is_total(statements[place])]
        return max(named or list(found), key=lambda place: (found[place].stated, place))
    total = judge.quantities.total

    def rank(place: int) -> tuple[float, bool, int]:
        away = abs(log2(found[place].stated) - log2(total)) if total else 0.0
        return round(away, 2), not _adds(found[place]), -place

    return min(found, key=rank)


def _last_sum(judge: Judge) -> int | None:
    """Of a text in which nothing is called the total: its last equation, where it adds and is the largest number."""
    claims = [(place, claim) for place, claim in enumerate(judge.claims) if claim is not None]
    if len(claims) < 2 or judge.quantities is not None:
        return None
    place, last = claims[-1]
    statement = judge.derivation.statements[place]
    largest = all(claim.stated < last.stated for _, claim in claims[:-1])
    plain = _adds(last) and not measures(statement) and not tags_of(statement.label) - {"all", "block"}
    return place if largest and plain else None


def _may_be(judge: Judge, place: int, statement: Statement, claim: Claim, collected: frozenset[int]) -> bool:
    about = _about(statement)
    is_model = judge.quantities is not None and claim.stated == judge.quantities.total
    if _part(judge, claim):
        return is_model and _adds(claim)  # "124,439,808 tied; untied: 124,439,808 + 38,597,376"
    if is_model:
        return True
    if is_total(statement):
        part = not about and tags_of(statement.heading) - KINDS and not _near(judge, claim)
        if part and not _adds(claim):
            return False
        return about <= {"all", "block"} or (_adds(claim) and "one" not in about)
    return _adds(claim) and "one" not in about and (place in collected or _near(judge, claim))


def _about(statement: Statement) -> frozenset[str]:
    """What a label is about: of "Total: embedding + 12 × block" the words before the colon."""
    before, *colon = re.split(r"[:\uff1a]", statement.label, maxsplit=1)
    return tags_of(before if colon and TOTAL.search(before) else statement.label)


def _collected(judge: Judge) -> frozenset[int]:
    """The sums that go on from two earlier lines at least."""
    users = Counter(user for claim in judge.claims if claim is not None for user in set(claim.users))
    return frozenset(place for place, lines in users.items() if lines > 1)


def _near(judge: Judge, claim: Claim) -> bool:
    total = judge.quantities.total if judge.quantities else 0
    return bool(total) and abs(claim.stated - total) * FAR < total


def _adds(claim: Claim) -> bool:
    """Whether it is a sum; what a difference leaves is no whole."""
    parts = claim.term.parts if claim.term is not None else ()
    return len(parts) > 1 and all(part.value > 0 for part in parts)


def _part(judge: Judge, claim: Claim) -> bool:
    """Whether a larger number of parameters goes on from it: what restates it, or says its bytes, is none."""
    users = ((judge.derivation.statements[place], judge.claims[place]) for place in claim.users)
    return any(user and user.stated > claim.stated and not measures(statement) for statement, user in users)
