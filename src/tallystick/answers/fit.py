"""Whether a device holds a model, the most that it holds of it, and the cheapest change that makes it fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tallystick.answers.devices import Device
from tallystick.answers.memory.memory import Memory, memory
from tallystick.answers.memory.model_states import is_packed
from tallystick.answers.workload import positions
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

MOST_RANKS = 1024
MOST = 2**30  # sequences, or tokens of one: what still fits then is not limited by memory

NOT_COUNTED = "kernels' workspaces, gaps between allocations"

# Widest first; of those as wide, the one that is used more.
WIDTHS = {"inference": ("float32", "bfloat16", "int8", "int4"), "training": ("float32", "bfloat16")}


class Step(NamedTuple):
    """One option set otherwise."""

    what: str  # in words, with what it costs
    option: str
    value: Any
    instead_of: tuple[Any, ...] = ()  # the values that it may replace; none is any


# Cheapest first: what costs nothing, then time, then exactness, then what is trained at all.
STEPS = {
    "inference": (
        Step("weights in bfloat16", "dtype", "bfloat16"),
        Step("keys and values cached in fp8", "kv_dtype", "fp8"),
        Step("weights quantised to int8", "dtype", "int8"),
        Step("keys and values cached in int4", "kv_dtype", "int4"),
        Step("weights quantised to int4", "dtype", "int4"),
    ),
    "training": (
        Step("attention by a kernel that keeps no scores", "attention", "flash"),
        Step("the loss in chunks, so that not all logits exist at once", "loss", "chunked"),
        Step("a fused optimizer step, which needs no buffers", "optimizer", "adamw-fused", ("adamw",)),
        Step("activations of attention computed again in the backward pass", "recompute", "selective"),
        Step("all activations but the layers' inputs computed again: a third more compute", "recompute", "full"),
        Step("an 8-bit optimizer", "optimizer", "adam8bit", ("adamw", "adamw-fused")),
        Step("weights in bfloat16: trained in it alone, they lose small updates to rounding", "dtype", "bfloat16"),
        Step("LoRA of rank 16 in place of training all weights", "lora", 16, (None,)),
        Step("weights quantised to nf4, under the adapters", "dtype", "nf4"),
    ),
}


@dataclass(frozen=True)
class Spread:
    """A model over several devices, as options of `memory`; what each holds, the fullest of them."""

    ranks: int
    options: dict[str, int]
    bytes: int


@dataclass(frozen=True)
class Fit:
    """What a device holds of a model. Each largest value is for the others as they were asked."""

    device: Device
    asked: Memory
    batch: int | None  # the largest; 0 where none fits, None where memory sets no limit
    sequence: int | None  # the longest, likewise
    dtype: str | None  # the widest of WIDTHS, None where none fits
    changes: tuple[str, ...]  # what makes it fit, together; () where it fits, or nothing does
    options: dict[str, Any]  # the same, as options of `memory`
    changed: Memory | None  # what it takes then
    spread: Spread | None  # over how many such devices it fits as it was asked
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the device holds what was asked."""
        return self.asked.total <= self.device.room

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick fit``: keys are a contract, added to and never renamed."""
        return {
            "source": self.asked.source,
            "mode": self.asked.mode,
            "device": self.device._asdict(),
            "fits": self.fits,
            "asked": {
                "batch": self.asked.batch,
                "sequence": self.asked.sequence,
                "total_bytes": self.asked.total,
                "peak": self.asked.peak.phase,
                "phases": [asdict(phase) for phase in self.asked.phases],
            },
            "largest_batch": self.batch,
            "longest_sequence": self.sequence,
            "widest_dtype": self.dtype,
            "changes": list(self.changes),
            "options": self.options,
            "changed_bytes": self.changed.total if self.changed else None,
            "spread": asdict(self.spread) if self.spread else None,
            "notes": list(self.notes),
        }


def fit(ledger: Ledger, device: Device, **options: Any) -> Fit:
    """Whether `device` holds a model as `memory` is asked for it with `options`, and what it holds at most.

    Where it does not fit, the changes are the cheapest together: none that costs more is named while cheaper ones do.

    Raises:
        BadInput: as `memory` does.
    """
    asked = memory(ledger, device=device, **options)

    def total(**changed: Any) -> int:
        return memory(ledger, **{**options, **changed}).total

    def largest(option: str, most: int) -> int | None:
        if total(**{option: most}) == total(**{option: 1}):
            return None if total(**{option: 1}) <= device.room else 0
        return _largest(lambda value: total(**{option: value}) <= device.room, most)

    longest = positions(ledger)
    batch = largest("batch", MOST)
    sequence = largest("sequence", longest or MOST)
    dtype = None
    if options.get("precision", "pure") == "pure" and options.get("lora") is None:
        dtype = next((name for name in WIDTHS[asked.mode] if total(dtype=name) <= device.room), None)
    steps: tuple[Step, ...] = ()
    if not asked.fits:
        steps = _cheapest(ledger, device, asked.mode, options)
    changed = {step.option: step.value for step in steps}
    after = memory(ledger, **{**options, **changed}) if steps else None
    unpacked = (
        ["the widest dtype is one of weights unpacked: these are stored packed"] if dtype and is_packed(ledger) else []
    )
    return Fit(
        device=device,
        asked=asked,
        batch=batch,
        sequence=sequence,
        dtype=dtype,
        changes=tuple(step.what for step in steps),
        options=changed,
        changed=after,
        spread=None if asked.fits else _spread(ledger, device, asked.mode, options),
        notes=tuple(dict.fromkeys((*asked.notes, *(after.notes if after else ()), *unpacked, _not_counted(device)))),
    )


def _not_counted(device: Device) -> str:
    return f"not counted: {NOT_COUNTED}" if device.context else f"not counted: the driver's context, {NOT_COUNTED}"


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest value up to `most` that fits, if every smaller one does; 0 where not even 1."""
    if not fits(1):
        return 0
    low, high = 1, 2  # low fits
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
    """The cheapest steps that make it fit; () where not even all of them do."""
    asked = {"optimizer": "adamw", **options}
    possible = [step for step in STEPS[mode] if not step.instead_of or asked.get(step.option) in step.instead_of]
    for steps in _by_cost(possible):
        try:
            changed = memory(ledger, **{**options, **{step.option: step.value for step in steps}})
        except BadInput:  # steps that do not go together, such as nf4 weights without adapters
            continue
        if changed.total <= device.room:
            return steps
    return ()


def _spread(ledger: Ledger, device: Device, mode: str, options: dict[str, Any]) -> Spread | None:
    """The fewest such devices, as a power of two, that hold it as it was asked; None where so many do not.

    To train, they share all (ZeRO-3, FSDP), each with a batch of its own; to serve, they share each matrix as far as
    heads divide, and then the layers.
    """
    ranks = 2
    while ranks <= MOST_RANKS:
        halves = [ranks >> power for power in range(ranks.bit_length())]
        ways = [{"dp": ranks, "zero": 3}] if mode == "training" else [{"tp": tp, "pp": ranks // tp} for tp in halves]
        for way in ways:
            try:
                found = memory(ledger, **{**options, **way})
            except BadInput:  # heads or layers that so many do not divide
                continue
            if found.total <= device.room:
                return Spread(ranks, {name: number for name, number in way.items() if number > 1}, found.total)
        ranks *= 2
    return None


def _by_cost(steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    """Every set of steps, any number of cheaper ones before one that costs more: as binary numbers count."""
    for number in range(1, 2 ** len(steps)):
        chosen = tuple(step for place, step in enumerate(steps) if number >> place & 1)
        if len({step.option for step in chosen}) == len(chosen):
            yield chosen
