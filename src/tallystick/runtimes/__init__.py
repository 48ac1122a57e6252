"""How a model is run: the tensors that running it holds, and the FLOPs it computes.

An architecture says what a model is: parts, sizes, heads. A runtime says what running the model
holds and computes. A placement says on how many devices, and which shard each holds. Model ×
runtime × placement → bytes, FLOPs. Facts of a runtime are never in an architecture's file. Each
runtime is a folder or a file here that implements `Runtime`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tallystick.core.anatomy import Attending, Heads, Recurrence, Recurring, RunningPart


class Load(NamedTuple):
    """Work of one device, and its precision."""

    batch: int  # sequences in the batch
    sequence: int  # tokens in a sequence
    width: int  # bytes of an element of a matrix product's result
    mixed: bool = False  # autocast: the residual stream is in float32
    attention: str = "flash"  # "flash": a fused kernel | "eager": written out in PyTorch
    recompute: str = "none"  # none | selective: recompute attention scores | full: recompute each block from its input

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return self.batch * self.sequence


class Cached(NamedTuple):
    """KV cache of one sequence in layers with equal attention."""

    name: str  # of the attention, with {} for the layer numbers
    layers: int
    window: int | None  # positions that the layers attend to; None is all
    positions: int  # tokens cached in each layer
    elements: int  # for one token in one layer
    what: str = "keys and values"
    wide: bool = False  # in float32, whatever the dtype of the cache

    @property
    def total(self) -> int:
        """Elements for one sequence in all these layers."""
        return self.layers * self.positions * self.elements


class Carried(NamedTuple):
    """Recurrent state of one sequence in equal layers."""

    name: str  # of the scan, with {} for the layer numbers
    layers: int
    keeps: Recurrence


class Running(Protocol):
    """A model in one runtime. `parts` and `attending` describe one device's shard of the model."""

    def cached(self, attending: Sequence[Attending], sequence: int) -> tuple[Cached, ...]:
        """Return the KV cache of one sequence.

        Args:
            attending: the attention layers.
            sequence: tokens read so far.
        """

    def carried(self, recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
        """Return the recurrent states of one sequence; their size does not depend on its length."""

    def saved(self, parts: Sequence[RunningPart], load: Load, *, learned: bool) -> Iterator[tuple[str, int, int]]:
        """Yield the tensors saved for the backward pass: kind, number of layers, bytes in each.

        Logits are left out.

        Args:
            parts: the parts that run.
            load: the device's work.
            learned: whether the model has learned position embeddings.
        """

    def recomputed(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, int]:
        """Return the memory of activation checkpointing in the backward pass.

        Args:
            parts: the parts that run.
            load: the device's work.

        Returns:
            Bytes of the recomputed activations, and the most bytes that gradients add.
        """

    def alive(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, str]:
        """Return the peak memory of activations without gradients.

        Args:
            parts: the parts that run.
            load: the device's work.

        Returns:
            Bytes alive at once, and the name of the part that holds most of them.
        """

    def pairs(self, heads: Heads, window: int | None, sequence: int) -> int:
        """Return the query-key pairs that attention multiplies, for one sequence in one head.

        Args:
            heads: the attention's heads.
            window: positions that each query attends to; None is all.
            sequence: tokens in the sequence.
        """


class Runtime(Protocol):
    """A way to run models, and the release that its facts are from."""

    @property
    def name(self) -> str:
        """Name that users know: ``"transformers"``."""

    @property
    def release(self) -> str:
        """Version on which the facts were measured."""

    def running(self, model_type: str, values: Mapping[str, Any]) -> Running:
        """Return how this runtime runs the models of a type.

        Args:
            model_type: the config's; "" if no config is known.
            values: the config keys that change a tensor, with their current values.
        """
