"""Unknown classes in a pickle, such as a config's dataclass or a whole model's modules.

No such class is imported or called. An object is kept as plain values: class name, fields and
items.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

# Modules that can run programs or read files: a file that names anything in them is refused.
_GUARDED = frozenset((*sys.stdlib_module_names, "torch", "numpy", "distutils", "setuptools", "pip", "pkg_resources"))
# Exceptions that such configs and modules hold: value classes, and activation functions.
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
    """An object of an unknown class, with the facts that the file states."""

    __slots__ = ("items", "listed", "name", "state")

    def __init__(self, name: str) -> None:
        self.name = name  # of the class, with its module
        self.state: Any = None
        self.items: dict[Any, Any] = {}  # if it is also a dictionary
        self.listed: list[Any] = []  # if it is also a list or set

    @property
    def fields(self) -> dict[Any, Any]:
        """Fields that the file sets, by name.

        A class with slots has two dictionaries in its state; the second holds the slots.
        """
        if isinstance(self.state, tuple):
            self.state = next((state for state in reversed(self.state) if isinstance(state, dict)), None)
        return self.state if isinstance(self.state, dict) else {}


def may_be_named(module: str, name: str) -> bool:
    """Return whether a weight file may name a class or function.

    Classes of the user or of libraries may be named; functions that can run programs may not.
    """
    whole = f"{module}.{name}"
    plain = all(part.isidentifier() and not part.startswith("__") for part in name.split("."))
    guarded = module.partition(".")[0] in _GUARDED or not all(map(str.isidentifier, module.split(".")))
    harmless = whole in _HARMLESS or module in _OF_VALUES or whole.startswith(_OF_TORCH)
    return plain and whole.isprintable() and (not guarded or harmless)


def is_class(name: str) -> bool:
    """Return whether a name looks like a class name; only classes may be called."""
    return name in _HARMLESS or name.rpartition(".")[2].lstrip("_")[:1].isupper()


def stranger_notes(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note on the named classes that were not imported."""
    listed = list(names)
    if not listed:
        return ()
    shown = ", ".join(name if len(name) <= 100 else f"{name[:99]}…" for name in listed[:MOST_NAMED])
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return (f"its pickle names {shown}{more}: nothing was imported or run",)
