"""The model's tensors in what a file holds: a state dict, or one inside the dictionary that a run saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.budget import current
from tallystick.errors import BadInput, quoted

# Where runs keep the model's tensors, the likeliest first: Lightning, nanoGPT and the books, DeepSpeed, others.
_KEYS = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")

# In the dictionary of a layer that hqq packed; beside it are its scales, and plain values that say how.
_PACKED = "W_q"

MOST_DEEP = 32  # dictionaries one inside the other
_TENSOR = 150  # bytes that Python takes for a tensor's name and place, without its letters


class Found(NamedTuple):
    """The tensors of a model by their names."""

    tensors: dict[str, Any]
    key: str | None  # that of the dictionary that was taken, None where the file is one itself
    beside: dict[str, Any]  # what stands beside it under other keys
    left_out: int  # values among the tensors that are none
    told: dict[str, Any]  # plain values beside packed ones, by their names

    def notes(self) -> tuple[str, ...]:
        """Which tensors were counted, where a file holds others too."""
        notes = []
        beside = ", ".join(map(quoted, list(self.beside)[:5])) + (", …" if len(self.beside) > 5 else "")
        if self.key is not None:
            notes.append(
                f"the tensors under {quoted(self.key)} were counted" + f", not what is beside: {beside}" * bool(beside)
            )
        elif beside:
            notes.append(f"what is under {beside} was not counted")
        if self.left_out:
            notes.append(f"{self.left_out} values among the tensors are none, and were left out")
        return tuple(notes)


def tensors_in(whole: Any, is_tensor: Callable[[Any], bool]) -> Found:
    """The state dict in what a file holds.

    Dictionaries inside it are opened, and lists that hold tensors; keys and places are joined by dots.

    Args:
        whole: dictionaries, with whatever a format makes of tensors.
        is_tensor: whether a value is one of those.

    Raises:
        BadInput: where there is none, or several of which none has a key that is known.
    """
    if not isinstance(whole, dict):
        raise BadInput("it holds no state dict: expected tensors by name")
    words = {key: value for key, value in whole.items() if isinstance(key, str)}
    if any(is_tensor(value) for value in words.values()) and not any(key in _KEYS for key in words):
        return _opened(words, None, {}, is_tensor)
    tried = [(key, words[key]) for key in _KEYS if isinstance(words.get(key), dict)]
    if not tried:
        tried = [(key, value) for key, value in words.items() if isinstance(value, dict)]
        tried = [(key, value) for key, value in tried if any(is_tensor(one) for one in value.values())]
        if len(tried) > 1 and any(_PACKED in value for _, value in tried):
            return _opened(words, None, {}, is_tensor)  # one for each layer
        if len(tried) > 1:
            raise BadInput(
                f"it holds several state dicts, and none under a usual key: {', '.join(map(quoted, words))[:200]}"
            )
    for key, value in tried:
        found = _opened(value, key, {name: one for name, one in words.items() if name != key}, is_tensor)
        if found.tensors:
            return found
    found = _opened(words, None, {}, is_tensor)
    if not found.tensors:
        raise BadInput("it holds no tensors")
    return found


def _opened(
    values: Mapping[Any, Any], key: str | None, beside: dict[str, Any], is_tensor: Callable[[Any], bool]
) -> Found:
    """All tensors of a dictionary and of those inside it, each of which is looked into once."""
    tensors: dict[str, Any] = {}
    told: dict[str, Any] = {}
    seen: set[int] = set()
    left_out, budget = 0, current()

    def open_(values: Mapping[Any, Any] | Sequence[Any], prefix: str, deep: int, packed: bool) -> None:
        nonlocal left_out
        if deep > MOST_DEEP or id(values) in seen:
            raise BadInput("it holds a dictionary inside itself, or one at two places: expected tensors by name")
        seen.add(id(values))
        packed = packed or _PACKED in values
        named = (
            values.items() if isinstance(values, Mapping) else ((str(place), one) for place, one in enumerate(values))
        )
        budget.step(len(values))
        for name, value in named:
            if not isinstance(name, str):
                left_out += 1
            elif is_tensor(value):
                budget.step(2)
                budget.keep(
                    _TENSOR + len(prefix) + len(name), "its tensors' names"
                )  # nested dictionaries multiply them
                if tensors.setdefault(prefix + name, value) is not value:
                    raise BadInput(f"it holds two tensors that are both called {quoted(prefix + name)}")
            elif isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(is_tensor, value))):
                open_(value, f"{prefix}{name}.", deep + 1, packed)
            elif packed:
                told[prefix + name] = value
            else:
                left_out += 1

    open_(values, "", 0, False)
    for name in tensors:
        if not name.isprintable():
            raise BadInput(f"it names {quoted(name)}, which holds characters that cannot be shown")
    return Found(tensors, key, beside, left_out, told)
