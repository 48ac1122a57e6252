"""Check a learner's parameter count of a teaching model at many sizes.

>>> judge("bare-bones-lm", lambda vocab_size, d_model: 2 * vocab_size * d_model)
wrong at each of 100 sizes: with vocab_size = 1, d_model = 2 it gives 4, which is 1 too few
>>> judge("bare-bones-lm", lambda vocab_size, d_model: vocab_size * (2 * d_model + 1))
right at each of 100 sizes
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tallystick import count
from tallystick.architectures import TEACHING, find
from tallystick.arguments import named
from tallystick.core.registry import REQUIRED
from tallystick.errors import BadInput, nearest, shown

__all__ = ["Judgement", "Trial", "judge"]

TRIES = 100
# Half of the tries have sizes up to SMALL, half up to LARGE. Every count stays far below 2⁵³,
# up to which floats are exact.
SMALL, LARGE = 9, 2_000
HEADS = 16  # most heads
MLP = ("inputs", "width", "depth", "outputs")  # sizes of the MLP if the answer does not take `widths`


@dataclass(frozen=True)
class Trial:
    """One model with drawn sizes, the answer's count, and its error.

    >>> trial = judge("single-head-attention", lambda d_model, d_head: 0).trials[0]
    >>> trial.off_by == -3 * trial.sizes["d_model"] * trial.sizes["d_head"]
    True
    """

    sizes: dict[str, Any]
    given: int
    off_by: int


@dataclass(frozen=True, repr=False)
class Judgement:
    """Whether an answer is right, with a sentence that says where it is wrong.

    `trials` go from the smallest model to the largest. They are empty if the answer could not be
    compared.

    >>> judge("mlp", lambda widths: 0).right
    False
    """

    right: bool
    sentence: str
    trials: tuple[Trial, ...] = ()

    def __repr__(self) -> str:
        return self.sentence


class _NotComparedError(BadInput):
    """The answer gives no number of parameters; the message says why in one line."""

    code = "user-code"


@named
def judge(model: str, answer: Callable[..., Any], /, **flags: bool) -> Judgement:
    """Check whether a function of a model's sizes gives its number of parameters.

    The function is called with the sizes that its arguments name. Sizes are drawn, the same each
    time, and the result is compared with `tallystick.count`. Optional sizes that it does not name,
    such as ``d_ff``, have their defaults. It may return an integer or a whole number of another
    type.

    Args:
        model: one of `tallystick.models.teaching`, such as ``"transformer-lm"``.
        answer: a function that returns the number of parameters.
        **flags: such as ``tie_word_embeddings=True``. A flag that `answer` names is drawn, unless
            it is given here; other flags have their defaults.

    Returns:
        The judgement: whether it is right at all sizes, and where it is wrong.

    Raises:
        BadInput: if there is no such model or flag. A fault of `answer` is in the judgement.

    >>> judge("single-head-attention", lambda d_model, d_head: 3 * d_model * d_head)
    right at each of 100 sizes
    """
    name = str(model).replace("-", "_")
    family = find(name) if name in TEACHING else None
    if family is None:
        raise BadInput(
            f"unknown model {shown(model)}{nearest(name, TEACHING)}; the course has {', '.join(TEACHING)}",
            code="unknown-name",
        )
    known = [key for key, default in family.keys.items() if isinstance(default, bool)]
    for flag in set(flags).difference(known):
        raise BadInput(f"{name} has no flag {flag}; it has {', '.join(known) or 'none'}", code="unknown-key")
    try:
        taken = _arguments(name, answer, family.keys)
        drawn = _drawn(family.keys, _names(name, family.keys, taken))
        trials = [_trial(name, answer, taken, {**sizes, **flags}) for sizes in drawn]
    except _NotComparedError as error:
        return Judgement(right=False, sentence=error.line)
    trials.sort(key=lambda trial: trial.given - trial.off_by)
    return Judgement(not any(trial.off_by for trial in trials), _sentence(trials), tuple(trials))


def _arguments(model: str, answer: Callable[..., Any], keys: Iterable[str]) -> list[str]:
    """Return the sizes and flags that the answer takes."""
    try:
        parameters = inspect.signature(answer).parameters
    except (TypeError, ValueError):
        raise _NotComparedError(f"{shown(answer)} is not a function of sizes: write one with def or lambda") from None
    taken = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            return list(keys)
        if name in keys and parameter.kind is not parameter.POSITIONAL_ONLY:
            taken.append(name)
        elif parameter.default is parameter.empty:
            raise _NotComparedError(
                f"{model} has no {name}{nearest(name, keys)}; name the arguments as {', '.join(keys)}"
            )
    return taken


def _names(model: str, keys: Mapping[str, Any], taken: list[str]) -> list[str]:
    """Return the names to draw: all required sizes, and others that the answer takes."""
    needed = {name for name, default in keys.items() if default is REQUIRED}
    if model == "mlp":
        needed = {"widths"} if "widths" in taken else set(MLP)
        both = [name for name in taken if name in MLP and "widths" in taken]
        if both:
            raise _NotComparedError(f"widths and {both[0]} set the same thing: keep one")
    return [name for name in keys if name in needed or name in taken]


def _drawn(keys: Mapping[str, Any], names: list[str]) -> list[dict[str, Any]]:
    random = Random(0)  # noqa: S311  # the same sizes each time: an answer is not judged by luck
    drawn = []
    for largest in [SMALL] * (TRIES // 2) + [LARGE] * (TRIES // 2):
        sizes: dict[str, Any] = {}
        for name in names:
            if isinstance(keys[name], bool):
                sizes[name] = random.random() < 0.5
            elif name == "widths":
                sizes[name] = [random.randint(1, largest) for _ in range(random.randint(2, 5))]
            else:
                sizes[name] = random.randint(1, min(largest, HEADS) if name == "n_heads" else largest)
        if "n_heads" in sizes:  # heads divide the width, into even parts for rotary pairs
            sizes["d_model"] = 2 * sizes["n_heads"] * random.randint(1, largest)
        drawn.append(sizes)
    return drawn


def _trial(model: str, answer: Callable[..., Any], taken: list[str], sizes: dict[str, Any]) -> Trial:
    given = {name: list(sizes[name]) if name == "widths" else sizes[name] for name in taken}
    try:
        value = answer(**given)
    except Exception as error:
        raise _NotComparedError(f"with {_said(given)} it raises {type(error).__name__}: {error}") from None
    whole = _whole(value)
    if whole is None:
        raise _NotComparedError(f"with {_said(given)} it gives {shown(value)}, which is not a whole number")
    return Trial(sizes, whole, whole - count({"model_type": model, **sizes}).total)


def _whole(value: Any) -> int | None:
    """Return the integer that a value of any numeric type equals, or None."""
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


def _sentence(trials: list[Trial]) -> str:
    right = [trial for trial in trials if not trial.off_by]
    wrong = [trial for trial in trials if trial.off_by]
    if not wrong:
        return f"right at each of {len(trials)} sizes"
    first = wrong[0]
    far = f"{abs(first.off_by):,} too {'many' if first.off_by > 0 else 'few'}"
    where = f"{len(wrong)} of" if right else "each of"
    sentence = (
        f"wrong at {where} {len(trials)} sizes: with {_said(first.sizes)} it gives {first.given:,}, which is {far}"
    )
    return f"{sentence}; right with {_said(right[0].sizes)}" if right else sentence


def _said(sizes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())
