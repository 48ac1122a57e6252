"""Values of an interpreted pickle that are not plain: names, results of calls, odd keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.errors import BadInput
from tallystick.formats.pickled.strangers import Stranger

Make = Callable[[tuple[Any, ...]], Any]


class Name:
    """A class or function named by a pickle, and our substitute for it. It is never imported."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Make) -> None:
        self.name, self.make = name, make


class Unknown(Name):
    """The name of a class that no format lists; its objects are strangers."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda _: Stranger(name))


class Other:
    """A known value without interest, such as a device: the called name and the object's state."""

    __slots__ = ("name", "state")

    def __init__(self, name: str, state: Any = None) -> None:
        self.name, self.state = name, state


class Ordered(dict[Any, Any]):
    """An `OrderedDict` or another subclass of dict."""


class Items(list[Any]):
    """A set, kept as a list since its items are not used."""


class Unhashable(tuple[Any, ...]):
    """A tuple that holds a list or dictionary, also in nested tuples: it cannot be a key."""

    __slots__ = ()


class Key:
    """A dictionary key other than a string or small number, hashed by identity.

    Hashing an object from a file could take forever.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def key_of(key: Any) -> Any:
    """Return the substitute for a key in a dictionary.

    Raises:
        BadInput: for a value that cannot be a key, such as a list.
    """
    if isinstance(key, list | dict | Unhashable):
        raise BadInput("its pickle uses a list or dictionary as a key: it is broken", code="malformed")
    small = isinstance(key, int) and key.bit_length() < 32
    return key if isinstance(key, str) or key is None or small else Key(key)


def made_tuple(items: list[Any]) -> tuple[Any, ...]:
    """Return a tuple whose type says whether it can be a key."""
    hashable = not any(isinstance(item, list | dict | Unhashable) for item in items)
    return tuple(items) if hashable else Unhashable(items)
