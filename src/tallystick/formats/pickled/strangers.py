"""Classes that a pickle names and that are no part of weights: a config's dataclass, the modules of a whole model.

Nothing of them is looked up, imported or called. What the file says of an object is kept as plain values: the name of
its class, its fields, its items.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

# What runs programs or reads files where it is called: a file that names it is refused, whatever it does with it.
_GUARDED = frozenset((*sys.stdlib_module_names, "torch", "numpy", "distutils", "setuptools", "pip", "pkg_resources"))
# What of these configs and modules hold: classes of values, and the functions that activations are.
_HARMLESS = frozenset(
    [
        "types.SimpleNamespace",
        "functools.partial",
        "builtins.object",
        "datetime.date",
        "datetime.time",
        "datetime.timezone",
    ]
)
_OF_VALUES = frozenset(
    [
        "typing",
        "enum",
        "dataclasses",
        "datetime",
        "decimal",
        "fractions",
        "numbers",
        "uuid",
        "collections",
        "collections.abc",
    ]
)
_OF_TORCH = (
    "torch.nn.modules.",
    "torch.nn.parallel.",
    "torch.nn.functional.",
    "torch._C._nn.",
    "torch.optim.",
    "torch.ao.nn.",
)

MOST_NAMED = 3


class Stranger:
    """An object of a class that is not known: what the file says of it."""

    __slots__ = ("items", "listed", "name", "state")

    def __init__(self, name: str) -> None:
        self.name = name  # of the class, with its module
        self.state: Any = None
        self.items: dict[Any, Any] = {}  # of one that is a dictionary too
        self.listed: list[Any] = []  # of one that is a list or set too

    @property
    def fields(self) -> dict[Any, Any]:
        """What the file sets in it, by name; a class of slots has two dictionaries, of which the second are theirs."""
        if isinstance(self.state, tuple):
            self.state = next((state for state in reversed(self.state) if isinstance(state, dict)), None)
        return self.state if isinstance(self.state, dict) else {}


def may_be_named(module: str, name: str) -> bool:
    """Whether a file of weights may name this: a class or function of the user's or of a library, not of what runs things."""
    whole = f"{module}.{name}"
    plain = all(part.isidentifier() and not part.startswith("__") for part in name.split("."))
    guarded = module.partition(".")[0] in _GUARDED or not all(map(str.isidentifier, module.split(".")))
    harmless = whole in _HARMLESS or module in _OF_VALUES or whole.startswith(_OF_TORCH)
    return plain and whole.isprintable() and (not guarded or harmless)


def is_class(name: str) -> bool:
    """Whether a name is written as those of classes are: what is called by another may do anything."""
    return name in _HARMLESS or name.rpartition(".")[2].lstrip("_")[:1].isupper()


def stranger_notes(names: Iterable[str]) -> tuple[str, ...]:
    """Which classes a file names that were not looked up."""
    listed = list(names)
    if not listed:
        return ()
    shown = ", ".join(name if len(name) <= 100 else f"{name[:99]}…" for name in listed[:MOST_NAMED])
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return (f"its pickle names {shown}{more}: nothing of that was imported or run",)
