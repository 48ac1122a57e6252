"""Judge a learner's function: call it with drawn sizes, and compare it with the model's count."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tallystick.arguments import named
from tallystick.course.arguments import NotComparedError, kind_of, matched
from tallystick.course.diagnosis import diagnosed
from tallystick.course.judgement import Judgement, Trial, said, sentence
from tallystick.course.mistakes import Tried
from tallystick.course.models import MLP, Model, model_of
from tallystick.course.sizes import TRIES, drawn
from tallystick.course.terms import Term
from tallystick.errors import BadInput, nearest, shown

__all__ = ["TRIES", "judge"]

Meant = Mapping[str, tuple[str, ...]]


@named
def judge(
    model: str | Callable[..., Any],
    answer: Callable[..., Any],
    /,
    *,
    at: Mapping[str, Any] | None = None,
    **flags: Any,
) -> Judgement:
    """Check whether a function of a model's sizes gives its number of parameters.

    The function is called with the sizes that its arguments name, in the model's words or in those
    of other courses and books: ``emb_dim`` for ``d_model``. Sizes are drawn, the same each time.
    Optional sizes that it does not name, such as ``d_ff``, have their defaults. It may return an
    integer or a whole number of another type.

    Args:
        model: one of `tallystick.models.teaching`, such as ``"transformer-lm"``; a class or
            function of one's own that builds an ``nn.Module`` from sizes, or its name,
            ``"package.module:factory"``. Its count is found as by ``formula(…, vary=…)``.
        answer: a function that returns the number of parameters.
        at: sizes that are fixed, such as ``{"n_layers": 1}``. All others are drawn.
        **flags: such as ``tie_word_embeddings=True``. A flag that `answer` names is drawn, unless
            it is given here; other flags have their defaults. For a class of one's own, any of its
            arguments.

    Returns:
        The judgement: whether it is right at all sizes, where it is wrong, and three hints.

    Raises:
        BadInput: if there is no such model, size or flag. A fault of `answer` is in the judgement.

    >>> judge("single-head-attention", lambda emb_dim, head_dim: 3 * emb_dim * head_dim)
    right at each of 100 sizes
    """
    judged = model_of(model)
    fixed = _fixed(judged, at or {}, flags)
    try:
        meant = matched(judged.name, answer, judged.keys)
        tried = _tried(judged, answer, meant, fixed)
    except NotComparedError as error:
        return Judgement(right=False, sentence=error.line)
    trials = tuple(trial for trial, _, _ in tried)
    if not any(trial.off_by for trial in trials):
        return Judgement(True, sentence(trials), trials)
    words = {key: name for name, keys in meant.items() for key in keys}
    found = diagnosed([Tried(terms, sizes, trial.off_by) for trial, terms, sizes in tried], words)
    return Judgement(False, sentence(trials), trials, found.hints, found.sentence)


def _tried(
    model: Model, answer: Callable[..., Any], meant: Meant, fixed: Mapping[str, Any]
) -> list[tuple[Trial, list[Term], dict[str, int]]]:
    """Return the trials from the smallest model to the largest, with its terms and sizes."""
    same = {other: keys[0] for keys in meant.values() for other in keys[1:]}
    implied = (
        {"depth": 1} if same and "depth" in model.keys and "depth" not in meant else {}
    )  # an MLP from a width back to it
    names = [name for name in _names(model, meant) if name not in {**fixed, **same, **implied}]
    terms = model.terms((*names, *same, *implied), fixed)
    words = {key: name for name, keys in meant.items() for key in keys}
    found = []
    for draw in drawn(model.keys, names, fixed):
        sizes = {**draw, **{other: draw[first] for other, first in same.items()}, **implied}
        inside = terms(sizes)
        whole = {name: value for name, value in sizes.items() if type(value) is int}
        inner = {factor.text: factor.value for term in inside for factor in term.factors}
        true = sum(term.value for term in inside)
        by_name = {words.get(name, name): value for name, value in sizes.items() if name not in implied}
        given = {name: _copied(sizes[keys[0]]) for name, keys in meant.items() if keys[0] in sizes}
        value = _value(answer, given)
        found.append((Trial(by_name, value, value - true), inside, {**inner, **whole}))
    return sorted(found, key=lambda pair: pair[0].given - pair[0].off_by)


def _fixed(model: Model, at: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not drawn, by the model's own names."""
    fixed = {}
    for name, value in flags.items():
        key = _key(name, model.keys if model.own else model.flags)
        if key is None:
            raise BadInput(
                f"{model.name} has no flag {name}; it has {', '.join(model.flags) or 'none'}", code="unknown-key"
            )
        fixed[key] = value
    for name, value in at.items():
        key = _key(name, model.keys)
        if key is None:
            raise BadInput(
                f"{model.name} has no {name}{nearest(name, model.keys)}; it has {', '.join(model.keys)}",
                code="unknown-key",
            )
        fixed[key] = value
    return fixed


def _key(name: str, keys: Collection[str]) -> str | None:
    return name if name in keys else next((key for key in keys if kind_of(key) == kind_of(name)), None)


def _names(model: Model, meant: Meant) -> list[str]:
    """Return the names of the sizes: all required ones, and others that the answer takes."""
    taken = {key for keys in meant.values() for key in keys}
    needed = model.required
    if model.name == "mlp":
        needed = {"widths"} if "widths" in taken else set(MLP)
        both = [name for name in MLP if name in taken and "widths" in taken]
        if both:
            raise NotComparedError(f"widths and {both[0]} set the same thing: keep one")
    return [name for name in model.keys if name in needed or name in taken]


def _value(answer: Callable[..., Any], given: Mapping[str, Any]) -> int:
    try:
        value = answer(**given)
    except Exception as error:
        raise NotComparedError(f"with {said(given)} it raises {type(error).__name__}: {error}") from None
    if value is ...:
        raise NotComparedError("your turn: write the count in place of ...")
    whole = whole_number(value)
    if whole is None:
        raise NotComparedError(f"with {said(given)} it gives {shown(value)}, which is not a whole number")
    return whole


def _copied(size: Any) -> Any:
    return list(size) if isinstance(size, list) else size


def whole_number(value: Any) -> int | None:
    """Return the integer that a value of any numeric type equals, or None.

    >>> whole_number(3.0), whole_number(0.5)
    (3, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        whole = int(value)
        return whole if whole == value else None
    except (TypeError, ValueError, OverflowError):
        return None
