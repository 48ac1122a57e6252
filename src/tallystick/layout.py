"""What a blueprint holds, read from it: every tensor, what attends, what carries a state, what runs.

>>> block = nn.Module(ln_1=nn.LayerNorm(4), mlp=nn.MLP(c_fc=nn.Linear(4, 16)))
>>> [entry.name for entry in lay_out(nn.Model(h=nn.Repeat(2, block)), dtype="float32")]
['h.{}.ln_1.weight', 'h.{}.ln_1.bias', 'h.{}.mlp.c_fc.weight', 'h.{}.mlp.c_fc.bias']
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeVar

from tallystick import anatomy
from tallystick import nodes as nn
from tallystick.anatomy import Attending, ChunkedScan, Heads, Mixing, Part, Recurring
from tallystick.dims import expression_of
from tallystick.ledger import Axis, Entry

G = TypeVar("G", bound=nn.Module)


def lay_out(model: nn.Model, *, dtype: str) -> list[Entry]:
    """Every tensor of a model as an `Entry`, stacks rolled up, in printing order."""

    def walk(
        node: nn.Node, name: str, role: str, active: Fraction | None, axes: tuple[Axis, ...], storage: str
    ) -> Iterator[Entry]:
        if isinstance(node, nn.Tensor):
            storage = model.ties.get(name, storage)
            tied = storage not in (name, _numbered(name, axes))
            yield Entry(
                name=name,
                shape=node.shape,
                role=node.role or role,
                dtype=dtype,
                storage=storage,
                unique=0 if tied else int(math.prod(node.shape)),
                trainable=node.trainable,
                buffer=node.buffer,
                active=active,
                axes=axes,
            )
            return
        role, active = node.role or role, node.active or active
        storage = node.of if isinstance(node, nn.Shared) else storage
        if isinstance(node, nn.Module):
            for child, below in node.children.items():
                yield from walk(below, _within(name, child), role, active, axes, _within(storage, child))
            return
        start = 0
        for count, block in node.runs:
            if count:
                numbers = (*axes, Axis(start, count))
                yield from walk(block, f"{name}.{{}}", role, active, numbers, f"{storage}.{{}}")
            start += int(count)

    return list(walk(model, "", "other", None, (), ""))


def _within(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _numbered(name: str, axes: tuple[Axis, ...]) -> str:
    """The name of a tensor of which there is one, its numbers filled in; that of the first one where there are more."""
    for axis in axes:
        name = name.replace("{}", str(int(axis.start)), 1)
    return name


def attending(model: nn.Model) -> tuple[Attending, ...]:
    """The attention of every layer, stacks rolled up, in printing order."""
    return tuple(
        Attending(name, axis.start, axis.length, node.heads)
        for name, axis, node in _found(model, nn.Attention)
        if node.heads
    )


def recurring(model: nn.Model) -> tuple[Recurring, ...]:
    """The scan of every layer that has one, stacks rolled up, in printing order."""
    return tuple(Recurring(name, axis.start, axis.length, node.keeps) for name, axis, node in _found(model, nn.Scan))


def mixing(model: nn.Model) -> tuple[Mixing, ...]:
    """What every layer multiplies beside its tensors and its attention, stacks rolled up, in printing order."""
    return tuple(
        Mixing(name, int(axis.start), int(axis.length), int(node.multiplications))
        for name, axis, node in _found(model, nn.Mixer)
    )


def under(model: nn.Model, kind: type[nn.Module]) -> tuple[str, ...]:
    """How the names of all tensors begin that are in groups of a kind."""
    return tuple(f"{name}." for name, _, _ in _found(model, kind))


def _found(whole: nn.Module, kind: type[G]) -> Iterator[tuple[str, Axis, G]]:
    """The groups of a kind inside another, by name, and in which layers they are."""

    def walk(node: nn.Node, name: str, axis: Axis | None) -> Iterator[tuple[str, Axis, G]]:
        if isinstance(node, kind):
            yield name, axis or Axis(0, 1), node
        elif isinstance(node, nn.Module) and not isinstance(node, nn.Tower):
            for child, below in node.children.items():
                yield from walk(below, _within(name, child), axis)
        elif isinstance(node, nn.ModuleList):
            start = 0
            for count, block in node.runs:
                if count:
                    yield from walk(block, f"{name}.{{}}", axis or Axis(start, count))
                start += int(count)

    return walk(whole, "", None)


def parts(model: nn.Model) -> tuple[Part, ...]:
    """What runs, stacks rolled up, in printing order; nothing where MLPs or scans do not say how they run."""

    def walk(
        node: nn.Node, name: str, layers: int, start: int | None, again: bool = False, within: bool = False
    ) -> Iterator[Part]:
        if isinstance(node, nn.Tensor | nn.ExpertList | nn.Tower):
            return
        if isinstance(node, nn.ModuleList):
            first = 0
            for count, block in node.runs:
                if count:
                    yield from walk(block, f"{name}.{{}}", layers * int(count), first)
                first += int(count)
            return
        if what := _runs(node):
            yield Part(name, layers, what, start, again)
        if isinstance(node, nn.Scan):
            return  # its projections and its norm are parts of it
        for child, inside in node.children.items():
            part_of = within or isinstance(node, nn.Attention | nn.MLP)
            if isinstance(inside, nn.Projection) and part_of:
                continue  # a part of what that one runs
            shared = isinstance(node, nn.ParallelBlock) and _reads_again(node, child)
            yield from walk(_placed(inside, node), _within(name, child), layers, start, shared, part_of)

    told = any(mlp.runs for *_, mlp in _found(model, nn.MLP)) or any(
        router.runs for *_, router in _found(model, nn.Router)
    )
    scans = all(isinstance(one.keeps.runs, ChunkedScan) for one in recurring(model))
    return tuple(walk(model, "", 1, None)) if told and scans else ()


def _placed(node: nn.Node, parent: nn.Module) -> nn.Node:
    """A norm inside an attention reads its heads; the same norm outside reads the token."""
    if isinstance(node, nn.Norm) and isinstance(parent, nn.Attention):
        return node.replace(runs=node.runs._replace(inner=True))
    return node


def _runs(node: nn.Module) -> Any:
    """How a group runs by itself, None where only its children do."""
    if isinstance(node, nn.Attention) and node.heads:
        return _reading(node, node.heads)
    if isinstance(node, nn.Scan):
        return node.keeps.runs
    return getattr(node, "runs", None)


def _reading(node: nn.Attention, heads: Heads) -> anatomy.Reading:
    """Which projections of an attention read the token, told by the formulas of their widths.

    One, the output, reads what all heads give. Of the others, those that read as much as the first read the token.
    """
    reads = [projection.runs.reads for _, _, projection in _found(node, nn.Projection)]
    given = heads.queries * heads.value_size
    likeness = [(width == given, expression_of(width) == expression_of(given)) for width in reads]
    reads.pop(likeness.index(max(likeness)))
    token, *others = reads
    waists = tuple(width for width in others if expression_of(width) != expression_of(token))
    return anatomy.Reading(heads, token, len(reads) - len(waists), waists)


def _reads_again(block: nn.ParallelBlock, name: str) -> bool:
    """Whether another child reads the same: the first norm, or the attention where both are behind one norm."""
    norms = [child for child, node in block.children.items() if isinstance(node, nn.Norm)]
    return name in norms[1:] or (isinstance(block.children[name], nn.MLP) and len(norms) == 1)
