"""Match the arguments of a learner's function with the sizes of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tallystick.core.size_names import SAME
from tallystick.errors import BadInput, nearest, shown

BOTH_ENDS = ("inputs", "outputs")  # of an MLP that returns to the width that it started from


class NotComparedError(BadInput):
    """The answer gives no number of parameters; the message says why in one line."""

    code = "user-code"


def matched(model: str, answer: Callable[..., Any], keys: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the model's sizes that each argument of an answer means.

    Args:
        model: the model's name, for messages.
        answer: the learner's function.
        keys: the model's sizes and flags.

    Raises:
        NotComparedError: if the answer is not a function, or an argument stands for no size.

    >>> matched("bare_bones_lm", lambda n_vocab, emb_dim: 0, {"vocab_size": 0, "d_model": 0})
    {'n_vocab': ('vocab_size',), 'emb_dim': ('d_model',)}
    """
    try:
        parameters = inspect.signature(answer).parameters
    except (TypeError, ValueError):
        raise NotComparedError(f"{shown(answer)} is not a function of sizes: write one with def or lambda") from None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return {key: (key,) for key in keys}
    usable = [
        name for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]  # fmt: skip
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in usable if name in keys}
    for name in usable:
        if name not in found and (meant := _meant(name, keys, {key for used in found.values() for key in used})):
            found[name] = meant
    for name, parameter in parameters.items():
        if name not in found and parameter.default is parameter.empty:
            raise NotComparedError(
                f"{model} has no {name}{nearest(name, keys)}; name the arguments as {', '.join(keys)}"
            )
    return {name: found[name] for name in usable if name in found}


def _meant(name: str, keys: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Return the free size that a name is another word for, or ()."""
    free = [key for key in keys if key not in taken]
    for names in (names for names in SAME if name in names):
        for key in free:
            if key in names:
                return (key,)
    return BOTH_ENDS if kind_of(name) == "d_model" and set(BOTH_ENDS) <= set(free) else ()


def kind_of(name: str) -> str:
    """Return the first name of a size, or the name itself: ``emb_dim`` is of the kind ``d_model``.

    >>> kind_of("emb_dim"), kind_of("n_experts")
    ('d_model', 'n_experts')
    """
    return next((names[0] for names in SAME if name in names), name)
