"""The models that answers are judged against: those of the course, and a learner's own classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tallystick import count
from tallystick.architectures import TEACHING, find
from tallystick.core.ledger import Ledger
from tallystick.core.registry import REQUIRED
from tallystick.course.arguments import kind_of
from tallystick.course.terms import Term, terms_of
from tallystick.errors import BadInput, nearest, shown

Terms = Callable[[Mapping[str, Any]], list[Term]]

MLP = ("inputs", "width", "depth", "outputs")  # sizes of the MLP if the answer does not take `widths`
_SIZE = {"n_heads": 2}  # sizes at which the terms of a teaching model are evaluated; others are 4
_TAUGHT = "tallystick.models.teaching"

# Values of the sizes at which a learner's class is built, on the meta device.
_VALUES = {"n_layers": [1, 2, 3, 4], "n_heads": [1, 2, 3, 4], "d_model": [12, 24, 36, 48, 72], "head_dim": [2, 4, 6, 8]}
_OTHERS = [4, 6, 10, 12, 16, 18]


class Model(NamedTuple):
    """A model as it is judged."""

    name: str
    keys: Mapping[str, Any]  # sizes and flags with their defaults
    terms: Callable[[tuple[str, ...], Mapping[str, Any]], Terms]  # of drawn names and fixed values
    own: bool = False  # a class of the learner's

    @property
    def flags(self) -> list[str]:
        """The keys that are True or False."""
        return [key for key, default in self.keys.items() if isinstance(default, bool)]

    @property
    def required(self) -> set[str]:
        """The keys without a default."""
        return {key for key, default in self.keys.items() if default is REQUIRED}


def model_of(given: Any) -> Model:
    """Return the model that an answer is judged against.

    Args:
        given: the name of a teaching model, a class or function that builds a module, or
            ``"package.module:factory"``.

    Raises:
        BadInput: if there is no such model.

    >>> list(model_of("single-head-attention").keys)
    ['d_model', 'd_head']
    """
    if isinstance(given, str) and ":" in given:
        from tallystick.sources.factory.factory import find as imported

        return _own(imported(given), given)
    if hasattr(given, "state_dict") and not isinstance(given, type):
        raise BadInput(
            f"{type(given).__name__}(…) is built already, at one size: pass the class {type(given).__name__} itself",
            code="bad-value",
        )
    if callable(given) and not isinstance(given, str):
        return _taught(_taught_class(given)) if _taught_class(given) else _own(given, _called(given))
    name = str(given).replace("-", "_")
    if name in TEACHING:
        return _taught(name)
    raise BadInput(
        f"unknown model {shown(given)}{nearest(name, TEACHING)}; the course has {', '.join(TEACHING)}",
        code="unknown-name",
    )


def _called(given: Any) -> str:
    return str(getattr(given, "__qualname__", type(given).__name__))


def _taught_class(given: Any) -> str:
    """Return the teaching model of a class of `tallystick.models.teaching`, or ""."""
    if not str(getattr(given, "__module__", "")).startswith(_TAUGHT):
        return ""
    classes = {family.class_name: name for name in TEACHING if (family := find(name))}
    return classes.get(_called(given), "")


def _taught(name: str) -> Model:
    family = find(name)
    assert family  # noqa: S101  # a name of TEACHING

    def terms(names: tuple[str, ...], fixed: Mapping[str, Any]) -> Terms:
        sizes = [key for key in (*names, *fixed) if not isinstance(family.keys[key], bool) and key != "widths"]

        @lru_cache
        def ledger(*switches: tuple[str, bool]) -> Ledger:
            return count({"model_type": name, **{key: _SIZE.get(key, 4) for key in sizes}, **dict(switches)})

        def at(drawn: Mapping[str, Any]) -> list[Term]:
            if "widths" in drawn:  # each length of the list is another model
                found = count({"model_type": name, **drawn})
                return terms_of(found, found.model.symbols)
            found = ledger(*((key, value) for key, value in drawn.items() if isinstance(value, bool)))
            return terms_of(found, {**found.model.symbols, **drawn})

        return at

    return Model(name, family.keys, terms)


def _own(target: Callable[..., Any], name: str) -> Model:
    """Return the model of a learner's class, whose terms are found by building it at many sizes."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        raise BadInput(
            f"{name} has no arguments that can be read: pass a class or a function", code="bad-value"
        ) from None
    keys = {
        key: REQUIRED if parameter.default is parameter.empty else parameter.default
        for key, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }

    def terms(names: tuple[str, ...], fixed: Mapping[str, Any]) -> Terms:
        varied = tuple((key, isinstance(keys[key], bool)) for key in names)
        try:
            ledger = _varied(target, varied, tuple(fixed.items()))
        except TypeError:  # a fixed value that has no hash
            ledger = _varied.__wrapped__(target, varied, tuple(fixed.items()))
        return lambda sizes: terms_of(ledger, {name: int(sizes[name]) for name in names})

    return Model(name, keys, terms, own=True)


@lru_cache(maxsize=32)
def _varied(
    target: Callable[..., Any], names: tuple[tuple[str, bool], ...], fixed: tuple[tuple[str, Any], ...]
) -> Ledger:
    from tallystick.sources.factory.sweep import ledger_by_varying

    vary = {name: [False, True] if flag else _VALUES.get(kind_of(name), _OTHERS) for name, flag in names}
    return ledger_by_varying(target, vary, dict(fixed))
