"""Extract the state dict of a pickled whole module, as from ``torch.save(model, path)``."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.core.budget import current
from tallystick.errors import BadInput
from tallystick.formats.pickled.pickle_values import Other
from tallystick.formats.pickled.strangers import Stranger

MOST_DEEP = 30  # most nested modules
_NAME = 150  # bytes that Python takes for a tensor's name and position, without its letters


class Opened(NamedTuple):
    """Contents of a file, with each module replaced by its state dict."""

    values: Any
    buffers: frozenset[int]  # ids of tensors that are buffers of a module


def opened(whole: Any) -> Opened:
    """Replace modules and subclasses of dict or list by plain values, also inside a dictionary."""
    buffers: set[int] = set()
    if isinstance(whole, Stranger):
        return Opened(_plain(whole, buffers), frozenset(buffers))
    if not isinstance(whole, dict):
        return Opened(whole, frozenset())
    strange = {key: _plain(one, buffers) for key, one in whole.items() if isinstance(one, Stranger)}
    return Opened({**whole, **strange} if strange else whole, frozenset(buffers))


def _plain(value: Stranger, buffers: set[int]) -> Any:
    if not _is_module(value):
        return value.items or value.listed or value
    state: dict[str, Any] = {}
    _add(value, "", 0, state, buffers)
    return state


def _is_module(value: Any) -> bool:
    return isinstance(value, Stranger) and isinstance(value.fields.get("_modules"), dict)


def _add(module: Stranger, front: str, depth: int, state: dict[str, Any], buffers: set[int]) -> None:
    """Add the tensors of a module and its submodules, with the names and order of a state dict."""
    if depth == MOST_DEEP:
        raise BadInput(f"it nests more than {MOST_DEEP} modules", code="too-large")
    fields, budget = module.fields, current()
    listed = _items(fields.get("_non_persistent_buffers_set"))
    budget.step(len(listed) + 1)
    passing = {name for name in listed if isinstance(name, str)}
    for part in ("_parameters", "_buffers"):
        held = fields.get(part)
        for name, value in held.items() if isinstance(held, dict) else ():
            budget.step(2)
            if value is None or not isinstance(name, str) or (part == "_buffers" and name in passing):
                continue
            budget.keep(_NAME + len(front) + len(name), "its tensors' names")
            state[front + name] = value
            if part == "_buffers":
                buffers.add(id(value))
    for name, value in fields["_modules"].items():
        budget.step(1)
        if isinstance(name, str) and _is_module(value):
            _add(value, f"{front}{name}.", depth + 1, state, buffers)


def _items(given: Any) -> list[Any]:
    """Return the items of a set, which older protocols build by a call."""
    held = given.state if isinstance(given, Other) else given
    return held if isinstance(held, list) else []
