"""How a model is run: what running it keeps in memory, and what it computes.

An architecture says what a model is: parts, sizes, heads. A runtime says what running it holds and computes; a placement, on
how many devices, and which shard each has. Model × runtime × placement → bytes, FLOPs. A fact of a runtime never stands in an
architecture's file, and each runtime is a folder or a file here that implements `Runtime`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tallystick.core.anatomy import Attending, Heads, Recurrence, Recurring, RunningPart


class Load(NamedTuple):
    """What one device is given to compute, and in which precision."""

    batch: int  # sequences
    sequence: int  # tokens of each
    width: int  # bytes of an element that a matrix product gives
    mixed: bool = False  # autocast: what goes from layer to layer is in float32
    attention: str = "flash"  # a fused kernel | "eager", by hand
    recompute: str = "none"  # none | selective: the scores of attention | full: each block, from its input

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return self.batch * self.sequence


class Cached(NamedTuple):
    """What layers that attend alike keep of one sequence."""

    name: str  # of the attention, with {} for the layers' numbers
    layers: int
    window: int | None  # how far they see, None for all
    positions: int  # tokens that each layer keeps
    elements: int  # of one token in one layer
    what: str = "keys and values"
    wide: bool = False  # in float32, whatever the dtype of the cache

    @property
    def total(self) -> int:
        """Elements of one sequence in all the layers."""
        return self.layers * self.positions * self.elements


class Carried(NamedTuple):
    """What layers alike that read token after token keep of one sequence."""

    name: str  # of the scan, with {} for the layers' numbers
    layers: int
    keeps: Recurrence


class Running(Protocol):
    """One model as one runtime runs it. `parts` and `attending` are what one device holds of the model."""

    def cached(self, attending: Sequence[Attending], sequence: int) -> tuple[Cached, ...]:
        """The KV cache of one sequence after `sequence` tokens."""

    def carried(self, recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
        """What remains of one sequence in layers that read token after token, however long it is."""

    def saved(self, parts: Sequence[RunningPart], load: Load, *, learned: bool) -> Iterator[tuple[str, int, int]]:
        """What a forward pass saves for the backward pass: of what, in how many layers, bytes in each.

        `learned` says that the model has learned positions. Logits are left out.
        """

    def recomputed(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, int]:
        """Bytes that one block holds once it is computed again, and what its gradients add at most."""

    def alive(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, str]:
        """Bytes of the largest set of tensors alive at once without gradients, and the part that holds most of them."""

    def pairs(self, heads: Heads, window: int | None, sequence: int) -> int:
        """Pairs of a query and a key that attention multiplies, of one sequence in one head."""


class Runtime(Protocol):
    """A way to run models, and the release whose code or tables its facts are from."""

    @property
    def name(self) -> str:
        """As its users call it: ``"transformers"``."""

    @property
    def release(self) -> str:
        """The version that the facts were measured on."""

    def running(self, model_type: str, values: Mapping[str, Any]) -> Running:
        """How it runs the models of a type.

        Args:
            model_type: the config's; "" where no config is known.
            values: the config keys that change a tensor, with the values in force.
        """
