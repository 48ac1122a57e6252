"""Layers that a library numbers apart, attention and MLP by turns: the two halves of one block, as x-transformers has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tallystick.answers.compare.tensor_group import NOWHERE, Strand
from tallystick.core.ledger import Axis

_SIDES = {"attention": 0, "mlp": 1, "experts": 1}


def in_blocks(strands: Iterable[Strand]) -> list[Strand]:
    """Strands with the numbers of their blocks: layers 0, 1, 2, 3 where attention and MLP alternate are blocks 0, 0, 1, 1."""
    strands = list(strands)
    stacks: dict[str, list[Strand]] = defaultdict(list)
    for strand in strands:
        if strand.layered:
            stacks[strand.stack].append(strand)
    apart = {stack for stack, ones in stacks.items() if _alternates(ones)}
    numbers: dict[Strand, list[int]] = {}  # a strand of no layers yet -> its blocks, in order
    for strand in strands:
        if strand.stack not in apart or not strand.layered:
            numbers[strand] = []
            continue
        for layer in range(strand.layers.start, sum(strand.layers)):
            numbers.setdefault(strand._replace(layers=NOWHERE, half=layer % 2), []).append(layer // 2)
    return [
        strand._replace(layers=layers) if blocks else strand
        for strand, blocks in numbers.items()
        for layers in (_runs(sorted(blocks)) or [NOWHERE])
    ]


def _alternates(strands: Sequence[Strand]) -> bool:
    """Whether each even layer has attention and no MLP, and each odd one an MLP and no attention."""
    sides: dict[int, set[int]] = defaultdict(set)
    for strand in strands:
        side = _SIDES.get(strand.role) if strand.kind == "matrix" else None
        if side is not None and strand.layers.length > 1:
            return False
        if side is not None:
            sides[strand.layers.start].add(side)
        elif strand.role in ("ssm", "conv"):
            return False
    depth = max((sum(strand.layers) for strand in strands), default=0)
    return depth > 2 and depth % 2 == 0 and len(sides) == depth and all(sides[n] == {n % 2} for n in list(sides))


def _runs(numbers: Sequence[int]) -> list[Axis]:
    runs: list[Axis] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1] = Axis(runs[-1].start, runs[-1].length + 1)
        else:
            runs.append(Axis(number, 1))
    return runs
