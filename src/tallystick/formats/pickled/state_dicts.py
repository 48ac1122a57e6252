"""Find the model's state dict in an unpickled file, alone or within a saved dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted
from tallystick.formats.pickled.pickle_values import Key

# Usual keys of the state dict, likeliest first: Lightning, nanoGPT and the books, DeepSpeed,
# others.
_KEYS = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")

# Key in the dictionary of an hqq-packed layer, next to its scales and its packing parameters.
_PACKED = "W_q"

MOST_DEEP = 32  # most nested dictionaries and lists
ALONE = "tensor"  # name of a file's only tensor, if it has none
_TENSOR = 150  # bytes that Python takes for a tensor's name and position, without its letters


class FoundTensors(NamedTuple):
    """Tensors of a model by name, and the other contents of the file."""

    tensors: dict[str, Any]
    key: str | None  # key of the state dict in the file; None if the file is a state dict itself
    extras: dict[str, Any]  # values next to the state dict, by their keys
    left_out: int  # number of non-tensor values among the tensors
    plain: dict[str, Any]  # plain values next to packed tensors, by name

    def notes(self) -> tuple[str, ...]:
        """Return notes on the contents that were not counted."""
        notes = []
        extras = ", ".join(map(quoted, list(self.extras)[:5])) + (", …" if len(self.extras) > 5 else "")
        if self.key is not None:
            notes.append(
                f"counted the tensors under {quoted(self.key)}" + f", not the other entries: {extras}" * bool(extras)
            )
        elif extras:
            notes.append(f"not counted: {extras}")
        if self.left_out:
            notes.append(f"{self.left_out} values among the tensors are not tensors, and were left out")
        return tuple(notes)


def tensors_in(whole: Any, is_tensor: Callable[[Any], bool]) -> FoundTensors:
    """Find the state dict in the contents of a file.

    Nested dictionaries, and lists that hold tensors, are flattened: keys and positions are joined
    by dots.

    Args:
        whole: the contents of the file.
        is_tensor: returns whether a value is a tensor.

    Raises:
        BadInput: if there are no tensors.
    """
    if is_tensor(whole):
        return FoundTensors({ALONE: whole}, None, {}, 0, {})
    if not isinstance(whole, dict | list | tuple):
        raise BadInput("it holds no state dict: expected a dictionary of tensors", code="malformed")
    if not isinstance(whole, dict):
        return _with_tensors(_opened(whole, None, {}, is_tensor))
    words = {key: value for key, value in whole.items() if isinstance(key, str)}
    if any(is_tensor(value) for value in words.values()) and not any(key in _KEYS for key in words):
        return _opened(whole, None, {}, is_tensor)
    tried = [(key, words[key]) for key in _KEYS if isinstance(words.get(key), dict)]
    if not tried:
        tried = [(key, value) for key, value in words.items() if isinstance(value, dict)]
        tried = [(key, value) for key, value in tried if any(is_tensor(one) for one in value.values())]
        if len(tried) > 1:  # several models, or the layers of one model
            return _opened(whole, None, {}, is_tensor)
    for key, value in tried:
        found = _opened(value, key, {name: one for name, one in words.items() if name != key}, is_tensor)
        if found.tensors:
            return found
    return _with_tensors(_opened(whole, None, {}, is_tensor))


def _with_tensors(found: FoundTensors) -> FoundTensors:
    """Return `found`, or raise `BadInput` if it holds no tensors."""
    if not found.tensors:
        raise BadInput("it holds no tensors", code="malformed")
    return found


def _opened(
    values: Mapping[Any, Any] | Sequence[Any], key: str | None, extras: dict[str, Any], is_tensor: Callable[[Any], bool]
) -> FoundTensors:
    """Return all tensors of a dictionary or list, including nested ones."""
    tensors: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    above: list[int] = []  # ids of the enclosing dictionaries and lists
    left_out, budget = 0, current()

    def is_open(value: Any) -> bool:
        """Return whether a value is searched: a dictionary, or a list that may hold tensors."""
        listed = isinstance(value, list | tuple)
        return isinstance(value, dict) or (listed and any(isinstance(one, dict | list | tuple) for one in value))

    def open_(values: Mapping[Any, Any] | Sequence[Any], prefix: str, packed: bool) -> None:
        nonlocal left_out
        if id(values) in above:
            raise BadInput("it holds a dictionary inside itself: expected a dictionary of tensors", code="malformed")
        if len(above) == MOST_DEEP:
            raise BadInput(f"it nests more than {MOST_DEEP} dictionaries", code="too-large")
        above.append(id(values))
        packed = packed or _PACKED in values
        budget.step(len(values) + 1)  # counted for each place that holds it
        for name, value in _named(values):
            if is_tensor(value):
                budget.step(2)
                budget.keep(
                    _TENSOR + len(prefix) + len(name), "its tensors' names"
                )  # nested dictionaries multiply them
                if tensors.setdefault(prefix + name, value) is not value:
                    raise BadInput(f"it holds two tensors named {quoted(prefix + name)}", code="overlap")
            elif is_open(value):
                open_(value, f"{prefix}{name}.", packed)
            elif packed:
                plain[prefix + name] = value
            else:
                left_out += 1
        above.pop()

    open_(values, "", False)
    return FoundTensors(tensors, key, extras, left_out, plain)


def _named(values: Mapping[Any, Any] | Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the items of a dictionary or list by name; keys that are not strings are formatted."""
    for place, (key, value) in enumerate(values.items() if isinstance(values, Mapping) else enumerate(values)):
        plain = key.value if isinstance(key, Key) else key
        yield plain if isinstance(plain, str) else str(plain) if _is_short(plain) else f"key {place}", value


def _is_short(key: Any) -> bool:
    """Return whether a key has a short text."""
    if isinstance(key, tuple):
        return len(key) < _SHORT and not any(isinstance(one, tuple) or not _is_short(one) for one in key)
    if isinstance(key, int):
        return key.bit_length() < 8 * _SHORT
    return key is None or isinstance(key, float) or (isinstance(key, str | bytes) and len(key) < _SHORT)


_SHORT = 64
