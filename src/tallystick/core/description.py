"""What a model is besides its tensors: the sizes that its config names, its heads, its scans, and what runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from tallystick.core.anatomy import Attending, Mixing, Recurring, RunningPart

if TYPE_CHECKING:
    from tallystick.core.ledger import Entry


class Recipe(Protocol):
    """What a config laid a ledger out from: it can be laid out anew with other values."""

    @property
    def family(self) -> str:
        """The model type."""

    @property
    def values(self) -> Mapping[str, Any]:
        """Each key that changes a tensor of the family, with the value in force."""

    def entries(self, values: Mapping[str, Any]) -> tuple[Entry, ...]:
        """The entries under other values, rolled up; `BadInput` where they make no model."""


@dataclass(frozen=True)
class ModelDescription:
    """What is known of a model besides its tensors. Every ledger has one; without a config it is empty."""

    architecture: str | None = None  # the model type, or the name of a live module's class
    symbols: Mapping[str, int] = field(default_factory=dict)  # the config keys in the shapes, with their values
    positions: int | None = None  # tokens of a sequence, as a config states them where none are learned
    recipe: Recipe | None = field(default=None, compare=False)  # the config that laid the model out
    attending: tuple[Attending, ...] = ()  # how each layer attends
    recurring: tuple[Recurring, ...] = ()  # which layers carry a state along
    mixing: tuple[Mixing, ...] = ()  # products of layers that no tensor's shape shows
    parts: tuple[RunningPart, ...] = ()  # what runs
    irregular: str = ""  # which products do not take each token once, in words
    towers: tuple[str, ...] = ()  # how the names of tensors begin that read images or sound, and no token
    unlearned: tuple[str, ...] = ()  # how the names of parameters begin that get no gradients

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", MappingProxyType(dict(self.symbols)))

    def __reduce__(self) -> tuple[Any, ...]:
        """By its fields: a read-only mapping cannot be pickled."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return ModelDescription, tuple({**values, "symbols": dict(self.symbols)}.values())
