"""What a module says of its tensors, as plain data: it goes from the process that built the module to the one that asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.core.ledger import Entry


class ModuleFacts(NamedTuple):
    """One module: its tensors, and what its class and its config say of them."""

    entries: tuple[Entry, ...]
    class_name: str
    model_type: str  # of its config; "" where it has none
    config_class: str
    config: Mapping[str, Any]  # as its to_dict() gives it; empty where its type is not native
    meant: Sequence[tuple[str, ...]] | None  # groups of names that should be one tensor; None where nobody says
    lazy: tuple[str, ...]  # parameters without a shape
    unsaved: int  # elements in buffers that a state dict leaves out
    registered: str = ""  # the wrapper that has listed its Parameters, "" where none has
    uncounted: Mapping[str, int] = {}  # elements of what a state dict holds and nobody knows what for, by name

    def to_json(self) -> dict[str, Any]:
        """What `json` writes."""
        active = Entry._fields.index("active")
        entries: list[list[Any]] = [list(entry) for entry in self.entries]
        for entry in entries:
            entry[active] = None if entry[active] is None else str(entry[active])
        return {**self._asdict(), "entries": entries}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ModuleFacts:
        """What `to_json` gave, read again by `json`."""
        given = {**values, "entries": tuple(_entry(*entry) for entry in values["entries"])}
        given["lazy"] = tuple(values["lazy"])
        if values["meant"] is not None:
            given["meant"] = [tuple(names) for names in values["meant"]]
        return cls(**given)


def _entry(*fields: Any) -> Entry:
    entry = Entry(*fields)
    active = None if entry.active is None else Fraction(entry.active)
    return entry._replace(shape=tuple(entry.shape), active=active, axes=())
