"""What `memory` answers: bytes of each part, and the phases of a run, whose peak is the total."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from tallystick.answers.devices import Device
from tallystick.answers.memory.gguf_rules import FILE_TYPES
from tallystick.answers.memory.largest_layer import LargestLayer, largest_layer_of
from tallystick.answers.memory.lines import PARTS, Line
from tallystick.core.display import Displayed
from tallystick.core.entries import Entry

# Parts that exist at the same time. torch's zero_grad sets gradients to None after each step. So no
# gradient exists while the forward pass fills the memory with activations, and each activation is
# freed as gradients replace it. The peak is therefore at one end of backward, or, with
# recomputation, while the first or the last block is recomputed. For the first block, the
# activations of the last norm and head are counted, though they are freed. For the last block, the
# gradients that it still has to compute are counted.
PHASES: dict[str, dict[str, tuple[str, ...]]] = {
    "inference": {
        "prefill": ("weights", "kv_cache", "activations", "logits"),
        "decoding": ("weights", "kv_cache"),
    },
    "training": {
        "start of backward": ("weights", "buckets", "optimizer", "activations", "logits", "gathered"),
        "backward of a layer": ("weights", "optimizer", "activations", "gathered", "reduced"),
        "recomputation of the first layer": (
            "weights",
            "buckets",
            "optimizer",
            "activations",
            "recomputed",
            "gathered",
        ),
        "recomputation of the last layer": ("weights", "buckets", "optimizer", "gradients", "recomputed", "gathered"),
        "end of backward": ("weights", "gradients", "buckets", "optimizer", "backward_buffers"),
        "optimizer step": ("weights", "gradients", "buckets", "optimizer", "step_buffers"),
    },
}
# Without that part, the phase does not exist or is not the peak.
ONLY_WITH = {
    "backward of a layer": "reduced",
    "recomputation of the first layer": "recomputed",
    "recomputation of the last layer": "recomputed",
}
MODES = tuple(PHASES)


@dataclass(frozen=True)
class Phase:
    """A moment of a run, and the bytes in memory then.

    >>> import tallystick
    >>> [phase.phase for phase in tallystick.memory("gpt2").phases]
    ['prefill', 'decoding']
    """

    phase: str
    bytes: int


class BytesOf:
    """Bytes of one part of a `Memory`, summed over its lines: ``weights_bytes`` of ``weights``."""

    def __set_name__(self, owner: type[Memory], name: str) -> None:
        self._part = name.removesuffix("_bytes")

    def __get__(self, answer: Memory, owner: type[Memory] | None = None) -> int:
        return sum(line.bytes for line in answer.lines if line.part == self._part)


@dataclass(frozen=True, repr=False)
class Memory(Displayed):
    """Memory that a model needs, with its parts. All sizes are in bytes, of one rank.

    >>> import tallystick
    >>> answer = tallystick.memory("gpt2", mode="training")
    >>> answer.weights_bytes == answer.gradients_bytes == 4 * 124_439_808  # float32
    True
    """

    source: str
    mode: str  # inference | training
    batch: int  # sequences per pass
    sequence: int  # tokens per sequence
    lines: tuple[Line, ...]
    kv_cache_bytes_per_token: int | None  # bytes that one more token adds to the KV cache; None for training
    notes: tuple[str, ...]
    device: Device | None = None
    dtype: str | None = None  # as requested; None keeps each tensor's own
    held: tuple[Entry, ...] = field(default=(), repr=False, compare=False)  # the weights of inference

    @cached_property
    def largest_layer(self) -> LargestLayer | None:
        """The largest layer of a device map; None in training."""
        return largest_layer_of(self.held, None if self.dtype in FILE_TYPES else self.dtype)

    # Not all parts exist at the same time, so they sum to more than `total_bytes`.
    weights_bytes: ClassVar[BytesOf] = BytesOf()  # with the scales of packed ones, and buffers
    gradients_bytes: ClassVar[BytesOf] = BytesOf()  # of the trained weights
    buckets_bytes: ClassVar[BytesOf] = BytesOf()  # DDP's buckets for the gradients' all-reduce
    optimizer_bytes: ClassVar[BytesOf] = BytesOf()  # state that the optimizer keeps between steps
    activations_bytes: ClassVar[BytesOf] = BytesOf()  # saved for the backward pass, or alive in prefill
    logits_bytes: ClassVar[BytesOf] = BytesOf()  # in training with the loss's other tensors of that size
    recomputed_bytes: ClassVar[BytesOf] = BytesOf()  # of one layer, with activation checkpointing
    kv_cache_bytes: ClassVar[BytesOf] = BytesOf()  # keys, values and recurrent states
    gathered_bytes: ClassVar[BytesOf] = BytesOf()  # all-gathered weights
    reduced_bytes: ClassVar[BytesOf] = BytesOf()  # the current layer in the middle of backward, with sharded weights
    backward_buffers_bytes: ClassVar[BytesOf] = BytesOf()  # gradients of a tied tensor, before they are added
    step_buffers_bytes: ClassVar[BytesOf] = BytesOf()  # of the optimizer, during a step

    @property
    def fits(self) -> bool | None:
        """Whether the device has enough memory; None if no device was named."""
        return None if self.device is None else self.total_bytes <= self.device.room

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Bytes at each moment that can be the peak."""
        there = {line.part for line in self.lines}
        return tuple(
            Phase(phase, sum(line.bytes for line in self.lines if line.part in parts))
            for phase, parts in PHASES[self.mode].items()
            if phase not in ONLY_WITH or ONLY_WITH[phase] in there
        )

    @property
    def peak(self) -> str:
        """The phase with the most memory."""
        return self._fullest.phase

    @property
    def total_bytes(self) -> int:
        """Bytes at the peak: the memory that a device needs."""
        return self._fullest.bytes

    @property
    def _fullest(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick memory``. Keys are a contract: added, never renamed."""
        return {
            "source": self.source,
            "mode": self.mode,
            "batch": self.batch,
            "sequence": self.sequence,
            "dtype": self.dtype,
            **{f"{part}_bytes": getattr(self, f"{part}_bytes") for part in PARTS},
            "kv_cache_bytes_per_token": self.kv_cache_bytes_per_token,
            "total_bytes": self.total_bytes,
            "peak": self.peak,
            "phases": [asdict(phase) for phase in self.phases],
            **({"largest_layer": asdict(self.largest_layer)} if self.largest_layer else {}),
            **({"device": self.device._asdict(), "fits": self.fits} if self.device else {}),
            "lines": [asdict(line) for line in self.lines],
            "notes": list(self.notes),
        }
