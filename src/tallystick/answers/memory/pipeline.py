"""Split a model into pipeline stages: layers on each, embedding and head on the ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd
from typing import NamedTuple, TypeVar

from tallystick.core.anatomy import Attending, Dropout, Recurring, RunningPart
from tallystick.core.entries import EMBEDDING_ROLES, Axis, Entry
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of

Run = TypeVar("Run", Attending, Recurring, RunningPart)


class Stage(NamedTuple):
    """One pipeline stage."""

    number: int = 0
    of: int = 1
    layers: int = 0  # of this stage
    begin: int | None = None  # number of its first layer; None: earlier stages have as many layers

    @property
    def held(self) -> Axis:
        """Numbers of the layers that the stage has."""
        return Axis(self.number * self.layers if self.begin is None else self.begin, self.layers)

    @property
    def last(self) -> bool:
        """Whether the stage has the head."""
        return self.number == self.of - 1

    @property
    def waiting(self) -> int:
        """Micro-batches whose activations are kept until later stages return their gradients.

        Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters",
        section 2.2.
        """
        return self.of - self.number


def stages(ledger: Ledger, count: int) -> list[Stage]:
    """Return the stages that can be the busiest, without those that equal an earlier, busier stage.

    Args:
        ledger: the model.
        count: number of stages.
    """
    if count == 1:
        return [Stage()]
    size = layers_of(ledger.parameters) // count
    runs = [entry.axes[0] for entry in ledger.parameters if entry.axes]
    # The stage in which another run of layers begins still has layers of the previous run; the next
    # stage has the new run alone.
    numbers = {0, count - 1, *(int(run.start) // size + more for run in runs for more in (0, 1))}
    for one in ledger.model.attending:  # a pattern of windows starts at another offset in each stage
        period = sum(int(layers) for _, layers in one.heads.windows)
        turns = period // gcd(period, size)
        numbers.update(int(one.start) // size + turn for turn in range(min(turns, count) + 1))
    return [Stage(number, count, size) for number in sorted(numbers) if number < count]


def on_stage(entries: Iterable[Entry], stage: Stage) -> list[Entry]:
    """Return the entries of one stage: of its layers, and of the model's start or end.

    A tied matrix is on both ends: the first stage uses it for lookup, the last for the logits.
    Their gradients must be added across the two stages.

    Args:
        entries: tensors with `stacked` layers.
        stage: the stage.
    """
    if stage.of == 1:
        return list(entries)
    held = []
    for entry in entries:
        if not entry.axes:
            if _on_end(stage, first="embed" in entry.name or entry.role.endswith("_embedding")):
                held.append(entry)
        elif numbers := overlap(entry.axes[0], stage.held):
            held.append(entry._replace(axes=(numbers, *entry.axes[1:])))
    names = {entry.name for entry in held}
    return [_alone(entry) if entry.storage not in names else entry for entry in held]


def of_stage(ledger: Ledger, stage: Stage) -> Ledger:
    """Return the model of one stage."""
    if stage.of == 1:
        return ledger
    parts = []
    for part in ledger.model.parts:
        if part.start is not None:
            parts += _layers_held(part, part.start, stage)
        elif _on_end(stage, first="embed" in part.name or isinstance(part.what, Dropout)):
            parts.append(part)
    model = replace(
        ledger.model,
        attending=tuple(held for one in ledger.model.attending for held in _layers_held(one, one.start, stage)),
        recurring=tuple(held for one in ledger.model.recurring for held in _layers_held(one, one.start, stage)),
        parts=tuple(parts),
    )
    described = ledger.evidence.described
    return Ledger(
        tuple(on_stage(ledger.rolled, stage)),
        source=ledger.source,
        kind=ledger.kind,
        model=model,
        evidence=Evidence(described and of_stage(described, stage)),
    )


def stacked(entry: Entry) -> Entry:
    """Return a layer's single tensor, as in a live module, as a stack of one layer."""
    name, numbers = template_of(entry.name)
    storage, others = template_of(entry.storage)
    if entry.axes or not numbers or numbers != others or entry.role in EMBEDDING_ROLES:
        return entry
    axes = tuple(Axis(int(number), 1) for number in numbers)
    identity = "" if entry.identity == entry.name else entry.identity
    return entry._replace(name=name, storage=storage, identity=identity, axes=axes)


def layers_of(entries: Iterable[Entry]) -> int:
    """Return the number of layers of the longest stack."""
    ends: dict[str, int] = {}
    for entry in entries:
        if entry.axes:
            stack = entry.name.partition("{}")[0]
            ends[stack] = max(ends.get(stack, 0), int(entry.axes[0].start + entry.axes[0].length))
    return max(ends.values(), default=0)


def _on_end(stage: Stage, *, first: bool) -> bool:
    return stage.number == 0 if first else stage.last


def _layers_held(what: Run, start: int, stage: Stage) -> list[Run]:
    """Return the layers of a uniform run that a stage has: a list of none or one."""
    numbers = overlap(Axis(start, what.layers), stage.held)
    return [what._replace(start=numbers.start, layers=numbers.length)] if numbers else []


def within(numbers: Axis, share: int, size: int) -> Axis | None:
    """Return the overlap of `numbers` with the range number `share` of length `size`, or None."""
    return overlap(numbers, Axis(share * size, size))


def overlap(numbers: Axis, others: Axis) -> Axis | None:
    """Return the numbers in both ranges, or None."""
    start = max(int(numbers.start), int(others.start))
    stop = min(int(numbers.start + numbers.length), int(others.start + others.length))
    return Axis(start, stop - start) if start < stop else None


def _alone(entry: Entry) -> Entry:
    """Return an entry with its own storage, because its storage is on another stage."""
    return entry._replace(storage=entry.name, identity="", unique=entry.size)
