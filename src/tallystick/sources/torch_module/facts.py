"""Hold a module's tensors and ties as plain data that can cross processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.core.entries import Entry


class ModuleFacts(NamedTuple):
    """A module's tensors, and the statements of its class and config about them."""

    entries: tuple[Entry, ...]
    class_name: str
    model_type: str  # of its config; "" if it has none
    config_class: str
    config: Mapping[str, Any]  # from to_dict(); empty if the type is not native
    meant: Sequence[tuple[str, ...]] | None  # groups of names declared as tied; None if undeclared
    lazy: tuple[str, ...]  # parameters without a shape
    unsaved: int  # elements in buffers that a state dict leaves out
    registered: str = ""  # the wrapper that has registered the Parameters, or ""
    uncounted: Mapping[str, int] = {}  # name -> elements of state-dict tensors of unknown purpose

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        active = Entry._fields.index("active")
        entries: list[list[Any]] = [list(entry) for entry in self.entries]
        for entry in entries:
            entry[active] = None if entry[active] is None else str(entry[active])
        return {**self._asdict(), "entries": entries}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ModuleFacts:
        """Rebuild the facts from `to_json`'s values."""
        given = {**values, "entries": tuple(_entry(*entry) for entry in values["entries"])}
        given["lazy"] = tuple(values["lazy"])
        if values["meant"] is not None:
            given["meant"] = [tuple(names) for names in values["meant"]]
        return cls(**given)


def _entry(*fields: Any) -> Entry:
    entry = Entry(*fields)
    active = None if entry.active is None else Fraction(entry.active)
    return entry._replace(shape=tuple(entry.shape), active=active, axes=())
