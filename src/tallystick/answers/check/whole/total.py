"""Find the statement that is a derivation's total: by structure first, then by words."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from math import log2
from typing import NamedTuple

from tallystick.answers.check.chain.sides import LEAST_REFERENCE, names_in, numbers_in, symbolic
from tallystick.answers.check.claims import (
    LEAST_COUNT,
    PARAMETERS,
    Claim,
    is_in_bytes,
    is_total,
    measures,
    mentions_adapters,
)
from tallystick.answers.check.earlier.implied import begins_line
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.labels import layers_of, tags_of
from tallystick.answers.check.whole.prose import in_prose, nearly_add_up
from tallystick.answers.check.whole.sections import (
    MOST_LABEL_WORDS,
    SO_FAR,
    about_of,
    active_in,
    adds,
    counts_embeddings,
    factors_of,
    is_bare,
    is_below_part,
    is_near,
    is_of_section,
    is_part,
    is_under_part,
    largest_of,
    says_total,
    sums_rows,
    words_of,
)
from tallystick.answers.check.whole.several import (
    apart,
    grand_total,
    in_columns,
    is_of_models,
    named_apart,
    plain_total,
)
from tallystick.answers.check.whole.unstated import running, unstated
from tallystick.derivations.arithmetic import ASIDES, Number, Operation
from tallystick.derivations.statements import SUBTOTAL, TOTAL, Statement

LEAST_OF_PARTS = 1000  # a number smaller than another one by more than this factor is a size, not the whole
LEAST_STATED = 1000  # a total up to this, and no sum, counts something else
NEARLY = Fraction(1, 50)  # between a total and its largest parts: "~110M" above "24M" and "85M"
LEAST_PRECISE = 50  # a total by its rounding: 6.71B and 80.5M, and no 7B
_EXACT = re.compile(
    r"\W*(?:so |total )?(?:exact\w*|exakt\w*|genau|exat\w+|esatt\w+|précis\w*|точно|精确|准确|正確|정확)\W*",
    re.IGNORECASE,
)
# "46% of GPT-2 small's 124M total parameters"
_OF_QUOTED = re.compile(r"%\s(?:of|von|de|du|des|из)\s[^%=≈:;+]{0,40}?\d[\d.]*\s?[KMB]\b")


class Whole(NamedTuple):
    """Where a text states its total: an index among its statements, or several instead of one."""

    place: int | None
    several: tuple[int, ...] = ()


def whole(judge: Judge) -> Whole:
    """Return the statement that is the total of the text, if any.

    A number from which a text only computes bytes, operations or hours is given, not counted. So is
    a rounded one that the text opens with and never comes to.
    """
    found = _stated_whole(judge)
    place = found.place
    if place is None or _is_layer(judge, place) or not _counts(judge, place) or _is_quoted(judge, place):
        return Whole(None, found.several)
    several = named_apart(judge, place) if judge.quantities is None else ()
    return Whole(None, several) if several else found


def _is_layer(judge: Judge, place: int) -> bool:
    """Return whether a text counts one layer of the model and nothing else."""
    return judge.quantities is not None and judge.quantities.are_one_layer(judge.so_far.at(place).meant)


def _counts(judge: Judge, place: int) -> bool:
    """Return whether a text counts parameters: its total, or parts of it."""
    total, statement = judge.so_far.at(place), judge.derivation.statements[place]
    operand = any(
        one and one.expression and line.line == statement.line and total.side in {*numbers_in(one.expression)}
        for line, one in zip(judge.derivation.statements, judge.claims, strict=True)
    )
    if not operand and _is_model(judge, total, rounded=not any(map(is_in_bytes, judge.derivation.statements))):
        return True
    if judge.quantities is not None and mentions_adapters(statement.section) and not is_near(judge, total):
        return False
    if judge.quantities is not None and not adds(total) and total.meant * LEAST_OF_PARTS < judge.quantities.total:
        return False  # 64,000 of an example, next to a model of 124M
    bare = is_bare(judge, statement, total)
    if (TOTAL.search(words_of(statement)) and not bare) or statement.label.startswith("+"):
        return True
    others = [(line, one) for line, one in zip(judge.derivation.statements, judge.claims, strict=True) if one]
    computed = [
        (line, one) for line, one in others if one.expression or (len(line.sides) > 1 and one.stated >= LEAST_COUNT)
    ]
    least = total.stated / LEAST_OF_PARTS
    counted = any(one.stated >= least and _is_stated(one) and not is_in_bytes(line) for line, one in computed)
    return counted or not (computed or any(is_in_bytes(line) for line, _ in others))


def _stated_whole(judge: Judge) -> Whole:
    """Return the statement that states the total of the text, if any.

    A total is a sum or is labelled as a total, and no larger sum uses it. Several may qualify, as
    for two models, or a model with and without its LM head: the one nearest to the model is chosen.
    Without a model, the largest statement labelled as a total is chosen, or else the largest. Then
    totals that are derived one after another, each from lines of its own, are of several models.
    """
    if (last := running(judge)) is not None:
        return Whole(last)
    statements = judge.derivation.statements
    collected, active = _collected(judge), active_in(judge)
    largest = largest_of(judge)
    least = max(Fraction(1), largest / LEAST_OF_PARTS)  # 70% is a share; "N = 96" counts layers
    found = {
        place: claim
        for place, (statement, claim) in enumerate(zip(statements, judge.claims, strict=True))
        if claim is not None
        and not measures(statement)
        and (statement.column < 2 or is_of_models(judge, place))
        and (claim.meant >= least or sums_rows(judge, place) or (is_total(statement) and is_near(judge, claim)))
        and (claim.expression is not None or claim.meant > LEAST_STATED)
        and not (symbolic(claim.side) and judge.variables.origin.keys().isdisjoint(names_in(claim.side)))
        and _may_be(judge, place, claim, collected)
        and (place not in active or is_near(judge, claim))
    }
    sections = {
        place for place, claim in found.items() if claim.match and claim.match.component and not is_near(judge, claim)
    }
    # "total" of the embeddings, and of a layer's attention
    if len(sections) > 1 or any(_has_larger(judge, place) or _goes_on(judge, place) for place in sections):
        found = {place: claim for place, claim in found.items() if place not in sections}
    # "32 layers: ~1.34B" of the attention, where nothing else is counted
    found = {place: claim for place, claim in found.items() if place not in sections or is_total(statements[place])}
    found = {place: claim for place, claim in found.items() if not is_of_section(judge, claim, largest)}
    found = {place: claim for place, claim in found.items() if not is_below_part(judge, place, largest)}
    if any(_is_stated(claim) and is_total(statements[place]) for place, claim in found.items()):
        found = {place: claim for place, claim in found.items() if not symbolic(claim.side)}
    found = {place: claim for place, claim in found.items() if not is_bare(judge, statements[place], claim)} or found
    if not found:
        return Whole(unstated(judge))
    if judge.quantities is None:
        named = [place for place in found if is_total(statements[place])]
        if any(adds(found[place]) for place in named):
            named = [place for place in named if adds(found[place]) or not _is_given(judge, place)]
        named = [place for place in named if "block" not in about_of(statements[place])] or named  # "Total 4 layers"
        wholes = [place for place in named if not is_under_part(statements[place])]
        most = max((found[place].meant for place in wholes), default=Fraction(0))
        named = [place for place in named if place in wholes or found[place].meant > most]
        named = _of_parameters(judge, named)
        if not named:  # a sum without a name is the whole if nothing is counted after it
            last = _last_computed(judge)
            found = {place: claim for place, claim in found.items() if place >= last and claim.meant >= largest}
        if not any(map(_is_stated, found.values())):
            return Whole(None)  # only formulas
        if len(several := in_columns(judge, named) or apart(judge, named or sorted(found))) > 1:
            grand = grand_total(judge, named, several)
            grand = plain_total(judge, several) if grand is None else grand
            return Whole(None, several) if grand is None else Whole(grand)
        # A total in a list or table is the text's own; one amid a sentence may be another model's.
        return Whole(max(named or found, key=lambda place: (_is_item(statements[place]), found[place].meant, place)))
    total = judge.quantities.total
    if any(adds(claim) and is_near(judge, claim) for claim in found.values()):
        given = {place for place in found if _is_given(judge, place)}
        found = {place: claim for place, claim in found.items() if place not in given} or found

    def rank(place: int) -> tuple[float, bool, bool, bool, int]:
        numbers = {found[place].meant, found[place].stated}  # a sum with a slip is meant as the total all the same
        away = min((abs(log2(number) - log2(total)) for number in numbers if number > 0), default=0.0) if total else 0.0
        formula = not _is_stated(found[place])  # without a number
        exactly = found[place].stated == total and _EXACT.fullmatch(statements[place].label)  # "exact: 124,439,808"
        return round(away, 2), not exactly, formula, not adds(found[place]), -place

    best = min(found, key=rank)
    exact = found[best].written.low <= total <= found[best].written.high
    said = None if exact or adds(found[best]) else in_prose(judge, rounded=False)
    return Whole(best if said is None else said)


def _of_parameters(judge: Judge, named: list[int]) -> list[int]:
    """Return the totals that say what they count, if the largest of them is a sum, else all.

    "num_params_total = 44.4M" is the whole, and "counted total = 173.8M" may count operations.
    """
    said = [place for place in named if PARAMETERS.search(judge.derivation.statements[place].label)]
    largest = max(said, key=lambda place: judge.so_far.at(place).meant, default=None)
    return said if largest is not None and adds(judge.so_far.at(largest)) else named


def _is_given(judge: Judge, place: int) -> bool:
    """Return whether a rounded number stands above all products: "verify that it is about 8B"."""
    claim = judge.so_far.at(place)
    computed = any(one is not None and one.expression is not None for one in judge.claims[:place])
    return claim.expression is None and claim.is_rounded and not computed


def _is_quoted(judge: Judge, place: int) -> bool:
    """Return whether a text opens with a rounded total, and its other numbers do not give it.

    Example: "Total parameters: 46.7B", a list of settings, and "32 × 939.52M = 30.06B".
    """
    stated = judge.derivation.statements[place]
    if not _is_given(judge, place) or sums_rows(judge, place) or stated.titles:
        return False
    total, line = judge.so_far.at(place).stated, stated.line
    others = [
        (statement.line, one)
        for statement, one in zip(judge.derivation.statements, judge.claims, strict=True)
        if one and statement.line != line and one.stated * LEAST_OF_PARTS >= total and not measures(statement)
    ]
    opens = all(line < other for other, _ in others) and any(one.expression is not None for _, one in others)
    parts = [one.stated for _, one in others]
    whole_parts = (one.stated for _, one in others if not (one.used or (one.match and one.match.one_layer)))
    if not opens or len(parts) < 2:
        return False
    return not (nearly_add_up(parts, total, NEARLY) or abs(sum(whole_parts) - total) <= NEARLY * total)


def _is_item(statement: Statement) -> bool:
    """Return whether a statement is an item of a list or table, with a short label first.

    "This sum yields 12.4 + 5.7 = 18.1B" is a sentence.
    """
    _, label, behind = statement.plain.rpartition(statement.label or statement.plain)
    sentence = bool(label) and behind.lstrip(" (")[:1].isdigit() and len(statement.sides) > 1
    return begins_line(statement) and len(statement.label.split()) <= MOST_LABEL_WORDS and not sentence


def _may_be(judge: Judge, place: int, claim: Claim, collected: frozenset[int]) -> bool:
    """Return whether a statement may be the total, given its addends and its label."""
    statement = judge.derivation.statements[place]
    quoted = claim.is_rounded and claim.expression is None and _OF_QUOTED.search(statement.plain)
    if _is_model(judge, claim, rounded=True):  # "124,439,808 tied; untied: 124,439,808 + 38,597,376"
        return not quoted and (not is_part(judge, claim) or adds(claim) or is_total(statement))
    # The model's total is more than a subtotal, also where the text ends with that.
    subtotal = judge.quantities is not None and SUBTOTAL.search(statement.label)
    if quoted or is_part(judge, claim) or _is_share(claim) or SO_FAR.search(statement.label) or subtotal:
        return False
    about = about_of(statement)
    if is_total(statement):
        return says_total(judge, statement, claim, about)
    stack = "block" in tags_of(words_of(statement)) and counts_embeddings(judge, claim)  # "the last 58 layers"
    if stack or "one" in about or (judge.quantities is not None and _is_stack(claim)):
        return False
    if statement.label.startswith("+") and is_near(judge, claim):
        return True  # "= 85M + embeddings = 110M" adds to what precedes it
    layers = layers_of(statement.label) is not None  # "6 layers: 18.9M", from the total of one layer
    return (place in collected and (adds(claim) or layers)) or (adds(claim) and is_near(judge, claim))


def _is_model(judge: Judge, claim: Claim, *, rounded: bool) -> bool:
    """Return whether a number is the model's total, perhaps `rounded` to three digits or more."""
    if judge.quantities is None:
        return False
    total, (_, low, high) = judge.quantities.total, claim.written
    return claim.stated == total or (rounded and low <= total <= high and (high - low) * LEAST_PRECISE <= total)


def _is_share(claim: Claim) -> bool:
    """Return whether a claim is a fraction of a large number: "0.5 × 6738M"."""
    sizes = factors_of(claim)
    return len(sizes) == 2 and sizes[0] < 1 and sizes[1] >= LEAST_COUNT


def _last_computed(judge: Judge) -> int:
    """Return the last statement that computes parameters which no sum uses, or -1."""
    lines = enumerate(zip(judge.derivation.statements, judge.claims, strict=True))
    return max(
        (
            place
            for place, (line, one) in lines
            if one and one.expression and one.adds and one.stated >= LEAST_REFERENCE
            if not (one.used or measures(line))
        ),
        default=-1,
    )


def _has_larger(judge: Judge, place: int) -> bool:
    """Return whether a later statement counts more parameters, and no sum uses it."""
    size = judge.so_far.at(place).meant
    return any(
        one and one.adds and not (one.kind or one.used) and one.meant > size for one in judge.claims[place + 1 :]
    )


def _goes_on(judge: Judge, place: int) -> bool:
    """Return whether a text computes more behind a part, and breaks off before the whole."""
    behind = zip(judge.claims[place + 1 :], judge.derivation.statements[place + 1 :], strict=True)
    return any(one and one.expression and one.adds and not measures(line) for one, line in behind)


def _is_stack(claim: Claim) -> bool:
    """Return whether a claim is all layers of the model, without what is around them."""
    found = claim.match
    stack = found is not None and "block" in found.tags and not found.one_layer
    return stack and found is not None and found.component <= {"attention", "mlp", "block"}


def _collected(judge: Judge) -> frozenset[int]:
    """Return the statements that collect earlier ones.

    They use two or more earlier lines, are labelled as totals, or are larger and use such a
    statement.
    """
    claims = [claim for claim in judge.claims if claim is not None]
    users = Counter(user for claim in claims for user in set(claim.users))
    found = {place for place, lines in users.items() if lines > 1}
    found |= {
        place for place, claim in enumerate(judge.claims) if claim and is_total(judge.derivation.statements[place])
    }
    for place, claim in enumerate(judge.claims):
        if claim is not None and place in found:
            found |= {user for user in claim.users if judge.claims[user] and judge.so_far.at(user).meant > claim.meant}
    return frozenset(found)


def _is_stated(claim: Claim) -> bool:
    """Return whether a claim is a number, perhaps stated twice: "5,164,236,800 (5.16B)".

    A formula alone is not.
    """
    side = claim.side
    if isinstance(side, Number):
        return True
    return isinstance(side, Operation) and set(side.symbols) <= ASIDES
