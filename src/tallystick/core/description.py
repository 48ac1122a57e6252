"""What a model is besides its tensors: config sizes, heads, scans, running parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Protocol

from tallystick.core.anatomy import Attending, Mixing, Recurring, RunningPart
from tallystick.core.entries import Entry


class Recipe(Protocol):
    """The config that a ledger was built from; it can be rebuilt with other values."""

    @property
    def family(self) -> str:
        """The model type."""

    @property
    def values(self) -> Mapping[str, Any]:
        """Each key that changes a tensor of the family, with its current value."""

    def entries(self, values: Mapping[str, Any]) -> tuple[Entry, ...]:
        """Return the entries for other values, stacks rolled up.

        Raises:
            BadInput: if the values make no model.
        """


@dataclass(frozen=True)
class ModelDescription:
    """Facts of a model besides its tensors. Without a config it is empty."""

    architecture: str | None = None  # the model type, or the name of a live module's class
    symbols: Mapping[str, int] = field(default_factory=dict)  # config keys that occur in the shapes, with their values
    positions: int | None = None  # most tokens in a sequence as the config states them, if no positions are learned
    stretch: float = 1.0  # rotary scaling makes that many times as many positions
    recipe: Recipe | None = field(default=None, compare=False)  # the config that the model was built from
    attending: tuple[Attending, ...] = ()  # attention of each layer
    recurring: tuple[Recurring, ...] = ()  # layers with a recurrent state
    mixing: tuple[Mixing, ...] = ()  # products of two activations, which no tensor's shape shows
    parts: tuple[RunningPart, ...] = ()  # the parts that run
    irregular: str = ""  # in words: products that do not process each token exactly once
    towers: tuple[str, ...] = ()  # name prefixes of vision and audio towers, whose tensors process no text tokens
    unlearned: tuple[str, ...] = ()  # name prefixes of parameters that get no gradients

    language: ModelDescription | None = field(default=None, compare=False)  # its language model, if only that is known
    vision: tuple[tuple[str, int], ...] = ()  # sizes of its vision tower, if it has no recipe

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", MappingProxyType(dict(self.symbols)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by fields: a read-only mapping cannot be pickled."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return ModelDescription, tuple({**values, "symbols": dict(self.symbols)}.values())
