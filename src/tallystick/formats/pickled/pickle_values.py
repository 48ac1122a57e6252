"""What a pickle makes besides plain values: names that it may call, what it called, and its odd keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.errors import BadInput
from tallystick.formats.pickled.strangers import Stranger

Make = Callable[[tuple[Any, ...]], Any]


class Name:
    """A class or function that a pickle names, and what is made where it is called. It is never looked up."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Make) -> None:
        self.name, self.make = name, make


class Unknown(Name):
    """The name of a class that no format lists, of which objects are strangers."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda _: Stranger(name))


class Other:
    """What is known and of no interest, such as a device: the name that was called, and the state that it was given."""

    __slots__ = ("name", "state")

    def __init__(self, name: str, state: Any = None) -> None:
        self.name, self.state = name, state


class Ordered(dict[Any, Any]):
    """An `OrderedDict`, or another dictionary that is no plain one."""


class Items(list[Any]):
    """A set, whose items nobody asks for."""


class Unhashable(tuple[Any, ...]):
    """A tuple that holds a list or dictionary, directly or in a tuple: it can be no key."""

    __slots__ = ()


class Key:
    """A dictionary's key that is no word or small number: by itself, since hashing what a file made may never end."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def key_of(key: Any) -> Any:
    """What stands for a key in a dictionary.

    Raises:
        BadInput: for what can be no key, as a list.
    """
    if isinstance(key, list | dict | Unhashable):
        raise BadInput("its pickle has a list or dictionary for a key: it is broken", code="malformed")
    small = isinstance(key, int) and key.bit_length() < 32
    return key if isinstance(key, str) or key is None or small else Key(key)


def made_tuple(items: list[Any]) -> tuple[Any, ...]:
    """A tuple, which remembers whether it can be a key."""
    hashable = not any(isinstance(item, list | dict | Unhashable) for item in items)
    return tuple(items) if hashable else Unhashable(items)
