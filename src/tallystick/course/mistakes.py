"""The mistakes that people make in a count, each as a change of the true terms."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tallystick.course.terms import Term

Errors: TypeAlias = tuple[int, ...]  # one for each model
Sizes: TypeAlias = Mapping[str, int]  # the sizes of a model, by name
Change: TypeAlias = Callable[[Term, Sizes], int]  # what a learner counts for a term

_NAME = re.compile(r"[A-Za-z_]\w*")
_LESS_ONE = re.compile(r"(\w+) - 1")
_QKV = re.compile(r"(^|[._])(query|key|value|[qkv](_proj)?)\.weight$|W_(query|key|value)\.weight$")


class Tried(NamedTuple):
    """A model at drawn sizes: its true terms, and the error of the answer."""

    terms: Sequence[Term]
    sizes: Sizes
    error: int


class Group(NamedTuple):
    """Tensors that are miscounted together."""

    name: str
    tensors: tuple[str, ...]


class Mistake(NamedTuple):
    """A change of the terms of some tensors."""

    name: str  # of the group
    tensors: tuple[str, ...]
    words: str  # what is wrong: is left out
    change: Change
    way: str = ""  # too few or too many, if by the whole sum of the group

    def errors(self, tried: Sequence[Tried]) -> Errors:
        """Return what an answer with this mistake is off by, at each of some sizes."""
        inside = frozenset(self.tensors)
        return tuple(
            sum(self.change(term, one.sizes) - term.value for term in one.terms if term.tensor in inside)
            for one in tried
        )


def mistakes(tried: Sequence[Tried]) -> Iterator[Mistake]:
    """Yield the mistakes that can be made with a model's terms, the plainest first.

    Args:
        tried: the model at some sizes.
    """
    terms = {term.tensor: term for one in tried for term in one.terms}
    groups = list(_groups(terms))
    sizes = [name for name in dict.fromkeys(name for one in tried for name in one.sizes) if _NAME.fullmatch(name)]
    tied = {term.tensor for one in tried for term in one.terms if term.tied}
    for group in groups:
        if tied.intersection(group.tensors):
            yield Mistake(*group, "is tied, which adds no parameters, and is counted", _untied, "too many")
    for group in sorted(groups, key=lambda group: -len(group.tensors)):  # of equal matrices any may be missing
        yield from _some_of_many(group, terms)
    for group in groups:
        yield from _whole(group)
    for group in groups:
        yield from _factors(group, terms)
    for group in groups:
        yield from _sizes(group, terms, sizes)


# -- groups ---------------------------------------------------------------------------------------


def _groups(terms: Mapping[str, Term]) -> Iterator[Group]:
    """Yield each tensor, then tensors of one kind, then those of each module."""
    for name in terms:
        yield Group(name, (name,))
    biases = [name for name, term in terms.items() if name.endswith("bias") and term.role != "norm"]
    norms = [name for name, term in terms.items() if term.role == "norm" or "norm" in name]
    kinds = {
        "the query, key and value projections": [name for name in terms if _QKV.search(name)],
        "the biases of the linear layers": [name for name in biases if name not in norms],
        "the shifts of the norms": [name for name in norms if name.endswith("bias")],
        "the scales of the norms": [name for name in norms if name.endswith("weight")],
        "the norms": norms,
        "the biases and the norms": [name for name in terms if name in biases or name in norms],
        "the projections of attention": [
            n for n, term in terms.items() if term.role == "attention" and n not in biases
        ],
        "the layers": [name for name, term in terms.items() if term.layers],
    }
    seen: set[tuple[str, ...]] = set()
    modules: dict[str, list[str]] = {}
    for name in terms:
        *path, _ = name.split(".")
        for depth in range(1, len(path) + 1):
            modules.setdefault(".".join(path[:depth]), []).append(name)
    for label, inside in [*kinds.items(), *modules.items()]:
        if len(inside) > 1 and tuple(inside) not in seen:
            seen.add(tuple(inside))
            yield Group(label, tuple(inside))


# -- what can be wrong ----------------------------------------------------------------------------


def _whole(group: Group) -> Iterator[Mistake]:
    are = _are(group)
    yield Mistake(*group, f"{are} left out", lambda term, _: 0, "too few")
    yield Mistake(*group, f"{are} counted twice", lambda term, _: 2 * term.value, "too many")


def _some_of_many(group: Group, terms: Mapping[str, Term]) -> Iterator[Mistake]:
    """Yield that only some of several matrices of equal size are counted: a factor 4 is missing."""
    inside = [terms[name] for name in group.tensors]
    many = len(inside)
    sizes = {tuple(sorted(term.factors)) for term in inside}
    if many < 2 or len(sizes) > 1 or any(len(term.shape) < 2 or term.tied for term in inside):
        return
    for counted in range(1, many):
        some = frozenset(group.tensors[:counted])
        missing = f": the factor {many} is missing" if counted == 1 else ""
        words = (
            f"are {many} matrices of one size, of which {counted} {'is' if counted == 1 else 'are'} counted{missing}"
        )
        yield Mistake(*group, words, partial(_only, some))


def _factors(group: Group, terms: Mapping[str, Term]) -> Iterator[Mistake]:
    """Yield that a factor of all these terms is missing, or that n stands for n - 1."""
    inside = [terms[name] for name in group.tensors]
    for text in dict.fromkeys(factor.text for term in inside for factor in term.factors):
        if all(any(factor.text == text for factor in term.factors) for term in inside):
            layers = any(factor.text == text for term in inside for factor in term.layers)
            words = f"counted for one of {text} only" if layers else f"counted without the factor {text}"
            yield Mistake(*group, f"{_are(group)} {words}", partial(_with, text, "1"))
            if less := _LESS_ONE.fullmatch(text):
                words = f"{_are(group)} counted {less[1]} times, and there are {text}"
                yield Mistake(*group, words, partial(_with, text, text + " + 1"))


def _sizes(group: Group, terms: Mapping[str, Term], sizes: Sequence[str]) -> Iterator[Mistake]:
    """Yield that the terms have a size too many, or one size in place of another."""
    inside = [terms[name] for name in group.tensors]
    for size in sizes:
        words = f"{_are(group)} multiplied by {size} once too often"
        yield Mistake(*group, words, partial(_with, "", size))
    there = dict.fromkeys(factor.text for term in inside for factor in (*term.factors, *term.shape))
    for text in there:
        if all(any(factor.text == text for factor in (*term.factors, *term.shape)) for term in inside):
            for size in sizes:
                if size != text:
                    words = f"{'have' if _are(group) == 'are' else 'has'} {size} where {text} should be"
                    yield Mistake(*group, words, partial(_with, text, size))


def _untied(term: Term, _: Sizes) -> int:
    return math.prod(factor.value for factor in term.factors)


def _only(counted: frozenset[str], term: Term, _: Sizes) -> int:
    return term.value if term.tensor in counted else 0


def _with(old: str, new: str, term: Term, sizes: Sizes) -> int:
    """Return a term's product with one factor `old` replaced by `new`; "" is none."""
    if term.tied:
        return 0
    put = sizes.get(new, 1)
    if not old:
        return term.value * put
    values, left = [], old
    split = any(factor.text == old for factor in term.factors)
    for factor in term.factors if split else (*term.layers, *term.shape):
        if factor.text == left:
            left = ""
            values.append(factor.value + 1 if new == f"{old} + 1" else put)
        else:
            values.append(factor.value)
    return math.prod(values)


def _are(group: Group) -> str:
    return "are" if group.name.startswith("the ") else "is"
