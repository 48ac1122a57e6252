"""Tell the totals of several models, or of several sizes of one, from the total of a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from tallystick.answers.check.chain.sides import symbolic
from tallystick.answers.check.claims import Claim, is_in_bytes, is_total
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.labels import tags_of
from tallystick.derivations.statements import TOTAL, Statement

# GPT-2, BERT-base, LLaMA-7B, Llama 3 70B
_NAME = re.compile(
    r"\b(?:GPT|BERT|LLaMA|Mi[sx]tral|Qwen|Gemma|PaLM|OPT|Falcon|BLOOM|Phi|DeepSeek|ChatGLM|T5)(?![a-z])[\w.]*"
    r"(?:[ -](?:v?\d+(?:\.\d+)?[BM]?|small|base|medium|large|xl|tiny|mini)\b)*",
    re.IGNORECASE,
)
_OTHER = re.compile(r"(?!param|weight|grand\b|model\b)\b[^\W\d_]{2,}", re.IGNORECASE)  # a word next to one for a total
MUCH = 20  # a total this much larger is not of another model, but the whole of which the other is a part
UNLIKE = Fraction(3, 2)  # the smallest ratio of the totals of two models; a head may be a third of one
LEAST_TOTAL = 100_000  # of a model in a row of several
LEAST_PARTS = 2  # that two models have in common, with other sizes


def is_of_models(judge: Judge, place: int) -> bool:
    """Return whether a total is one of a row of them: "| Total | 39.3M | 25.4M |".

    Bytes may follow: "| Total | 1025B | 591 GB |".
    """
    lines = judge.derivation.statements
    if not is_total(lines[place]):
        return False
    same = judge.derivation.within(lines[place].line, lines[place].line)
    row = [number for number in same if lines[number].column and not is_in_bytes(lines[number])]
    stated = [claim.meant for number in row if (claim := judge.claims[number]) is not None]
    counts = all(lines[number].sides[-1].unit in ("", "parameters") for number in row)
    return counts and min(stated, default=Fraction(0)) >= LEAST_TOTAL


def named_apart(judge: Judge, place: int) -> tuple[int, ...]:
    """Return the totals of several models that a text names, if one of them is at `place`, or ().

    Each is the largest number computed under the name of its model: in the line or its heading.
    """
    largest: dict[str, int] = {}
    for at, (line, claim) in enumerate(zip(judge.derivation.statements, judge.claims, strict=True)):
        if claim is None or claim.expression is None or claim.meant < LEAST_TOTAL or is_in_bytes(line):
            continue
        name = _model_of(line)
        if name and (name not in largest or claim.meant >= judge.so_far.at(largest[name]).meant):
            largest[name] = at
    own = _model_of(judge.derivation.statements[place])
    sizes = sorted(judge.so_far.at(at).meant for at in largest.values())
    unlike = all(more >= UNLIKE * less for less, more in pairwise(sizes))
    return tuple(sorted(largest.values())) if own in largest and len(largest) > 1 and unlike else ()


def _model_of(statement: Statement) -> str:
    """Return the model that a line names before its first colon, or else its heading, or ""."""
    begins = statement.plain.lstrip("| ").partition(":")[0].partition("|")[0]
    found = next((name for words in (begins, statement.heading) if (name := _NAME.search(words))), None)
    return found[0].lower().replace(" ", "-") if found else ""


def in_columns(judge: Judge, places: Sequence[int]) -> tuple[int, ...]:
    """Return two totals of different models in one row.

    Columns of one layer and of all layers count the same model.
    """
    lines = judge.derivation.statements
    pairs = pairwise(place for place in places if "one" not in tags_of(lines[place].clause))
    apart = (pair for pair in pairs if lines[pair[0]].line == lines[pair[1]].line and "|" in lines[pair[0]].plain)
    return next((pair for pair in apart if _ratio(*map(judge.so_far.at, pair)) >= UNLIKE), ())


def grand_total(judge: Judge, places: Sequence[int], several: Sequence[int]) -> int | None:
    """Return the total that adds several others, as of the towers of a model, or None."""
    for place in reversed(places):
        added = {one.stated for one in judge.claims if one is not None and place in one.users}
        parts = {judge.so_far.at(part).stated for part in several if part != place}
        if len(parts) >= LEAST_PARTS and parts <= added:
            return place
    return None


def plain_total(judge: Judge, several: Sequence[int]) -> int | None:
    """Return the only total without another word in its label, if it is much larger, or None.

    Example: "TOTAL: 689,116,818" below "MLHA Total: 787,968".
    """
    plain = [place for place in several if not _OTHER.search(TOTAL.sub("", judge.derivation.statements[place].label))]
    others = [judge.so_far.at(place).meant for place in several if place not in plain]
    if len(plain) != 1 or not others:
        return None
    return plain[0] if judge.so_far.at(plain[0]).meant >= MUCH * max(others) else None


def apart(judge: Judge, places: Sequence[int]) -> tuple[int, ...]:
    """Return the totals that are of different models: each is derived after the one before it.

    Args:
        judge: the statements of the text, judged.
        places: indices of statements labelled as totals, in text order.
    """
    if cited := _cited(judge, places):
        return cited
    if again := next((pair for pair in pairwise(places) if _lists_again(judge, *pair)), ()):
        return again
    used: dict[int, set[int]] = {}
    for place, claim in enumerate(judge.claims):
        for user in claim.users if claim is not None else ():
            used.setdefault(user, set()).add(place)
    found: list[int] = []
    for place in places:
        claim, lines = judge.so_far.at(place), used.get(place, set())
        derived = bool(lines) or (claim.expression is not None and not symbolic(claim.expression))
        after = not found or min(lines, default=place) > found[-1]
        other = not found or _ratio(claim, judge.so_far.at(found[-1])) >= UNLIKE
        other = other or _counts_again(judge, found[-1], place, used)
        if derived and after and other:
            found.append(place)
    return tuple(found)


def _lists_again(judge: Judge, one: int, other: int) -> bool:
    """Return whether parts of a total are listed again under another heading, for another total."""
    lines, claims = judge.derivation.statements, [judge.so_far.at(place) for place in (one, other)]
    if lines[one].heading == lines[other].heading or claims[0].written.meets(claims[1].written):
        return False
    before = max((place for place in range(one) if lines[place].heading != lines[one].heading), default=-1)
    return len(_labels(judge, before, one) & _labels(judge, one, other)) >= LEAST_PARTS


def _labels(judge: Judge, before: int, place: int) -> set[str]:
    """Return the labels of the large numbers between two statements."""
    lines = zip(judge.derivation.statements[before + 1 : place], judge.claims[before + 1 : place], strict=True)
    return {line.label.lower() for line, claim in lines if claim is not None and claim.stated >= LEAST_TOTAL}


def _cited(judge: Judge, places: Sequence[int]) -> tuple[int, ...]:
    """Return totals of different models, each given in a section of its own and none derived."""
    lines, claims = judge.derivation.statements, [judge.so_far.at(place) for place in places]
    apart = len({lines[place].section for place in places}) == len(places) > 1
    given = apart and all(claim.expression is None and not claim.used for claim in claims)
    sizes = sorted(claim.meant for claim in claims)
    unlike = given and all(more >= UNLIKE * less for less, more in pairwise(sizes))
    return tuple(places) if unlike and not any(set(places) & {*one.users} for one in judge.claims if one) else ()


def _counts_again(judge: Judge, one: int, other: int, used: Mapping[int, Collection[int]]) -> bool:
    """Return whether a total counts the parts of another one again, with other sizes.

    Under a heading of its own, the total alone may differ.
    """
    before, after = (
        {judge.derivation.statements[place].label.lower(): judge.so_far.at(place).meant for place in used.get(of, ())}
        for of in (one, other)
    )
    again = before.keys() & after.keys()
    unlike = sum(before[label] != after[label] for label in again)
    first, second = (judge.derivation.statements[place].heading for place in (one, other))
    differ = not judge.so_far.at(one).written.meets(judge.so_far.at(other).written)
    return unlike >= LEAST_PARTS or (len(again) >= LEAST_PARTS and first != second and differ)


def _ratio(one: Claim, other: Claim) -> Fraction:
    """Return how much larger the larger of two totals is."""
    low, high = sorted((one.meant, other.meant))
    return high / low
