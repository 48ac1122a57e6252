"""Test whether a model fits on a device; find the largest batch and the cheapest change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tallystick.answers.devices import Device
from tallystick.answers.memory.answer import Memory
from tallystick.answers.memory.memory import memory
from tallystick.answers.memory.model_states import is_packed
from tallystick.answers.workload import positions
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

MOST_RANKS = 1024
MOST = 2**30  # sequences, or tokens of one: if this many fit, memory is not the limit

NOT_COUNTED = "kernel workspaces, allocator fragmentation"

# Widest first; of two equally wide, the more common one.
WIDTHS = {"inference": ("float32", "bfloat16", "int8", "int4"), "training": ("float32", "bfloat16")}


class Step(NamedTuple):
    """One option set to another value."""

    what: str  # in words, with its cost
    option: str
    value: Any
    instead_of: tuple[Any, ...] = ()  # values that it may replace; () means any value


# Cheapest first: free changes, then those that cost time, precision, and full training.
STEPS = {
    "inference": (
        Step("weights in bfloat16", "dtype", "bfloat16"),
        Step("KV cache in fp8", "kv_dtype", "fp8"),
        Step("weights quantised to int8", "dtype", "int8"),
        Step("KV cache in int4", "kv_dtype", "int4"),
        Step("weights quantised to int4", "dtype", "int4"),
    ),
    "training": (
        Step("FlashAttention, which stores no scores", "attention", "flash"),
        Step("loss in chunks, instead of all logits at once", "loss", "chunked"),
        Step("fused optimizer step, without buffers", "optimizer", "adamw-fused", ("adamw",)),
        Step("selective activation checkpointing (attention only)", "recompute", "selective"),
        Step("full activation checkpointing (a third more compute)", "recompute", "full"),
        Step("8-bit optimizer", "optimizer", "adam8bit", ("adamw", "adamw-fused")),
        Step("bfloat16 weights (risky: small updates are lost; prefer --precision master)", "dtype", "bfloat16"),
        Step("LoRA with rank 16 instead of full training", "lora", 16, (None,)),
        Step("base weights quantised to nf4 (QLoRA)", "dtype", "nf4"),
    ),
}


@dataclass(frozen=True)
class Spread:
    """A model sharded over several devices: options of `memory`, and bytes on the busiest rank."""

    ranks: int
    options: dict[str, int]
    bytes: int


@dataclass(frozen=True, repr=False)
class Fit(Displayed):
    """Largest batch, sequence and dtype that fit, each with the other options as requested.

    >>> import tallystick
    >>> answer = tallystick.fit("llama-3-8b", "24GB", dtype="bfloat16")
    >>> answer.fits, answer.asked.weights_bytes == 2 * 8_030_261_248
    (True, True)
    """

    device: Device
    asked: Memory
    largest_batch: int | None  # in sequences; 0 if none fits, None if memory is not the limit
    longest_sequence: int | None  # in tokens; 0 and None as for largest_batch
    widest_dtype: str | None  # of WIDTHS; None if none fits
    changes: tuple[str, ...]  # that make it fit, together; () if it fits already, or nothing helps
    options: dict[str, Any]  # the same changes, as options of `memory`
    changed_bytes: int | None  # at the peak, with the changes
    spread: Spread | None  # the smallest set of such devices on which the request fits
    notes: tuple[str, ...]

    @property
    def source(self) -> str:
        """The model that the user named."""
        return self.asked.source

    @property
    def mode(self) -> str:
        """``"inference"`` or ``"training"``."""
        return self.asked.mode

    @property
    def flags(self) -> tuple[str, ...]:
        """The same changes as options of the command line: ``--kv-dtype fp8``."""
        return tuple(f"--{name.replace('_', '-')} {value}" for name, value in self.options.items())

    @property
    def fits(self) -> bool:
        """Whether the device holds the requested run."""
        return self.asked.total_bytes <= self.device.room

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick fit``. Keys are a contract: added, never renamed."""
        return {
            "source": self.source,
            "mode": self.mode,
            "device": self.device._asdict(),
            "fits": self.fits,
            "asked": {
                "batch": self.asked.batch,
                "sequence": self.asked.sequence,
                "total_bytes": self.asked.total_bytes,
                "peak": self.asked.peak,
                "phases": [asdict(phase) for phase in self.asked.phases],
            },
            "largest_batch": self.largest_batch,
            "longest_sequence": self.longest_sequence,
            "widest_dtype": self.widest_dtype,
            "changes": list(self.changes),
            "options": self.options,
            "flags": list(self.flags),
            "changed_bytes": self.changed_bytes,
            "spread": asdict(self.spread) if self.spread else None,
            "notes": list(self.notes),
        }


def fit(ledger: Ledger, device: Device, **options: Any) -> Fit:
    """Test whether a model fits on `device`, and find the largest values that fit.

    If it does not fit, the cheapest set of changes is given: no change is named while cheaper
    changes suffice.

    Args:
        ledger: the model.
        device: the device to fit on.
        options: options of `memory`.

    Raises:
        BadInput: as `memory` does.
    """
    asked = memory(ledger, device=device, **options)

    def total(**changed: Any) -> int:
        return memory(ledger, **{**options, **changed}).total_bytes

    batch = largest(lambda value: total(batch=value), device.room, MOST)
    sequence = largest(lambda value: total(sequence=value), device.room, positions(ledger) or MOST)
    dtype = None
    if options.get("precision", "pure") == "pure" and options.get("lora") is None:
        dtype = next((name for name in WIDTHS[asked.mode] if total(dtype=name) <= device.room), None)
    steps: tuple[Step, ...] = ()
    if not asked.fits:
        steps = _cheapest(ledger, device, asked.mode, options)
    changed = {step.option: step.value for step in steps}
    after = memory(ledger, **{**options, **changed}) if steps else None
    unpacked = ["the dtype is for unpacked weights; these are stored packed"] if dtype and is_packed(ledger) else []
    return Fit(
        device=device,
        asked=asked,
        largest_batch=batch,
        longest_sequence=sequence,
        widest_dtype=dtype,
        changes=tuple(step.what for step in steps),
        options=changed,
        changed_bytes=after.total_bytes if after else None,
        spread=None if asked.fits else _spread(ledger, device, asked.mode, options),
        notes=tuple(dict.fromkeys((*asked.notes, *(after.notes if after else ()), *unpacked, _not_counted(device)))),
    )


def _not_counted(device: Device) -> str:
    return f"not counted: {NOT_COUNTED}" if device.context else f"not counted: driver context, {NOT_COUNTED}"


def largest(total: Callable[[int], int], room: int, most: int) -> int | None:
    """Return the largest value up to `most` whose bytes fit in `room`, or 0.

    Args:
        total: the bytes of a value; they never shrink as it grows.
        room: the bytes available.
        most: the largest value to try.

    Returns:
        The value; None if no value up to `most` takes more than 1 does.

    >>> largest(lambda value: 10 * value, 75, 1000), largest(lambda value: 80, 75, 1000)
    (7, 0)
    """
    if total(most) == total(1):
        return None if total(1) <= room else 0
    return _bisected(lambda value: total(value) <= room, most)


def _bisected(fits: Callable[[int], bool], most: int) -> int:
    if not fits(1):
        return 0
    low, high = 1, 2  # low always fits
    while high < most and fits(high):
        low, high = high, 2 * high
    if high >= most:
        if fits(most):
            return most
        high = most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _cheapest(ledger: Ledger, device: Device, mode: str, options: dict[str, Any]) -> tuple[Step, ...]:
    """Return the cheapest steps that make it fit; () if even all of them do not."""
    asked = {"optimizer": "adamw", **options}
    possible = [step for step in STEPS[mode] if not step.instead_of or asked.get(step.option) in step.instead_of]
    for steps in _by_cost(possible):
        try:
            changed = memory(ledger, **{**options, **{step.option: step.value for step in steps}})
        except BadInput:  # conflicting steps, such as nf4 weights without adapters
            continue
        if changed.total_bytes <= device.room:
            return steps
    return ()


def _spread(ledger: Ledger, device: Device, mode: str, options: dict[str, Any]) -> Spread | None:
    """Return the fewest devices (a power of two) that hold the request, or None above MOST_RANKS.

    For training, the ranks share all states (ZeRO-3, FSDP), each with its own batch. For inference,
    tensor parallel ranks split the heads as far as they divide; pipeline stages split the layers.
    """
    ranks = 2
    while ranks <= MOST_RANKS:
        halves = [ranks >> power for power in range(ranks.bit_length())]
        ways = [{"dp": ranks, "zero": 3}] if mode == "training" else [{"tp": tp, "pp": ranks // tp} for tp in halves]
        for way in ways:
            try:
                found = memory(ledger, **{**options, **way})
            except BadInput:  # heads or layers that the ranks do not divide
                continue
            if found.total_bytes <= device.room:
                return Spread(ranks, {name: number for name, number in way.items() if number > 1}, found.total_bytes)
        ranks *= 2
    return None


def _by_cost(steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    """Yield every set of steps by cost: all sets of cheaper steps precede a costlier step."""
    for number in range(1, 2 ** len(steps)):
        chosen = tuple(step for place, step in enumerate(steps) if number >> place & 1)
        if len({step.option for step in chosen}) == len(chosen):
            yield chosen
