"""Merge separately numbered attention and MLP layers into blocks, as in x-transformers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tallystick.answers.compare.tensor_group import NOWHERE, TensorGroup
from tallystick.core.entries import Axis

_SIDES = {"attention": 0, "mlp": 1, "experts": 1}


def in_blocks(groups: Iterable[TensorGroup]) -> list[TensorGroup]:
    """Renumber groups by block: alternating layers 0, 1, 2, 3 become blocks 0, 0, 1, 1.

    Args:
        groups: the groups of one model; stacks that do not alternate stay as they are.
    """
    groups = list(groups)
    stacks: dict[str, list[TensorGroup]] = defaultdict(list)
    for group in groups:
        if group.layered:
            stacks[group.stack].append(group)
    apart = {stack for stack, ones in stacks.items() if _alternates(ones)}
    numbers: dict[TensorGroup, list[int]] = {}  # a group without layers -> its blocks, in order
    for group in groups:
        if group.stack not in apart or not group.layered:
            numbers[group] = []
            continue
        for layer in range(group.layers.start, sum(group.layers)):
            numbers.setdefault(group._replace(layers=NOWHERE, half=layer % 2), []).append(layer // 2)
    return [
        group._replace(layers=layers) if blocks else group
        for group, blocks in numbers.items()
        for layers in (_runs(sorted(blocks)) or [NOWHERE])
    ]


def _alternates(groups: Sequence[TensorGroup]) -> bool:
    """Return whether even layers have only attention, and odd layers only an MLP."""
    sides: dict[int, set[int]] = defaultdict(set)
    for group in groups:
        side = _SIDES.get(group.role) if group.kind == "matrix" else None
        if side is not None and group.layers.length > 1:
            return False
        if side is not None:
            sides[group.layers.start].add(side)
        elif group.role in ("ssm", "conv"):
            return False
    depth = max((sum(group.layers) for group in groups), default=0)
    return depth > 2 and depth % 2 == 0 and len(sides) == depth and all(sides[n] == {n % 2} for n in list(sides))


def _runs(numbers: Sequence[int]) -> list[Axis]:
    runs: list[Axis] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1] = Axis(runs[-1].start, runs[-1].length + 1)
        else:
            runs.append(Axis(number, 1))
    return runs
