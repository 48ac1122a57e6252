"""Find the mistake that explains a wrong count at every size: a term left out, a factor missing.

Each possible mistake changes the true terms in one way, and so gives an error at each size. The
mistake whose errors are those of the answer is the diagnosis. It has to fit all sizes: then it is
no coincidence of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tallystick.core.algebra.notations import TEXT, write
from tallystick.core.algebra.polynomials import collect
from tallystick.course.mistakes import Errors, Mistake, Tried, mistakes
from tallystick.course.terms import Term

Said = Callable[[str], str]  # a text about the model's sizes, in the learner's words

FEW = 14  # trials with which mistakes are compared first; what fits these is checked on all
MOST_SHAPES = 8  # in a hint


class Diagnosis(NamedTuple):
    """Three hints, each with more than the one before; the last is the mistake if one was found."""

    hints: tuple[str, ...]
    sentence: str = ""


def diagnosed(tried: Sequence[Tried], words: Mapping[str, str]) -> Diagnosis:
    """Return the hints for a wrong answer.

    Args:
        tried: the true terms of each model, with the error of the answer.
        words: the learner's name of a size, by the model's.
    """
    wrong = next(one.terms for one in tried if one.error)

    def said(text: str) -> str:
        return re.sub(r"[A-Za-z_]\w*", lambda name: words.get(name[0], name[0]), text)

    found = _explained(tried)
    if not found:
        parts = ", ".join(dict.fromkeys(term.part for term in wrong))
        return Diagnosis((f"count part by part: {parts}", _shapes(wrong, said), _sums(wrong, said)))
    errors = [one.error for one in tried if one.error]
    way = "too many" if min(errors) > 0 else "too few" if max(errors) < 0 else "miscounted"
    where = " and ".join(dict.fromkeys(_called(alike) for alike in found))
    tensors = {tensor for alike in found for mistake in alike for tensor in mistake.tensors}
    inside = [term for term in wrong if term.tensor in tensors]
    sentence = "; ".join(_sentence(alike, wrong, said) for alike in found)
    return Diagnosis((f"look at {where}: {way} there", _shapes(inside, said), sentence), sentence)


def _explained(tried: Sequence[Tried]) -> list[list[Mistake]]:
    """Return one mistake, or two, with the errors of the answer, each with others like it."""
    some = [*tried[:: max(1, len(tried) // FEW)], *[one for one in tried if one.error][:3]]
    target = tuple(one.error for one in some)
    known: dict[Errors, list[Mistake]] = {}
    for mistake in mistakes(tried):
        errors = mistake.errors(some)
        if any(errors):
            alike = known.setdefault(errors, [])
            if not alike or (alike[0].words == mistake.words and len(mistake.tensors) == 1 == len(alike[0].tensors)):
                alike.append(mistake)
    for errors, alike in ((target, known.get(target, [])),) if target in known else known.items():
        rest = tuple(whole - part for whole, part in zip(target, errors, strict=True))
        both = [alike] if not any(rest) else [alike, known[rest]] if rest in known and len(tried) > 1 else []
        if both and _fits([one[0] for one in both], tried):
            return both
    return []


def _fits(some: Sequence[Mistake], tried: Sequence[Tried]) -> bool:
    columns = [mistake.errors(tried) for mistake in some]
    return [sum(column) for column in zip(*columns, strict=True)] == [one.error for one in tried]


# -- in words -------------------------------------------------------------------------------------


def _called(alike: Sequence[Mistake]) -> str:
    names = [mistake.name for mistake in alike]
    return " or ".join(names) if len(names) < 3 else f"one of {', '.join(names)}"


def _sentence(alike: Sequence[Mistake], terms: Sequence[Term], said: Said) -> str:
    first = alike[0]
    sentence = f"{_called(alike)} {said(first.words)}"
    if not first.way:
        return sentence
    return f"{sentence}: {_sum([term for term in terms if term.tensor in first.tensors], said)} {first.way}"


def _sum(terms: Sequence[Term], said: Said) -> str:
    return said(write(collect([term.product for term in terms]), TEXT))


def _shapes(terms: Sequence[Term], said: Said) -> str:
    shapes = list(dict.fromkeys(f"{term.tensor} {said(term.written)}" for term in terms))
    more = f" and {len(shapes) - MOST_SHAPES} more" if len(shapes) > MOST_SHAPES else ""
    return f"the shapes: {', '.join(shapes[:MOST_SHAPES])}{more}"


def _sums(terms: Sequence[Term], said: Said) -> str:
    parts: dict[str, list[Term]] = {}
    for term in terms:
        if not term.tied:
            parts.setdefault(term.part, []).append(term)
    return f"the sums: {', '.join(f'{part} {_sum(inside, said)}' for part, inside in parts.items())}"
