"""What a blueprint holds, read from it: every tensor, what attends, what carries a state, what runs.

>>> from tallystick.blueprint import MLP, Linear, LayerNorm, Repeat
>>> block = Group(ln_1=LayerNorm(4), mlp=MLP(c_fc=Linear(4, 16)))
>>> [entry.name for entry in lay_out(Model(h=Repeat(2, block)), dtype="float32")]
['h.{}.ln_1.weight', 'h.{}.ln_1.bias', 'h.{}.mlp.c_fc.weight', 'h.{}.mlp.c_fc.bias']
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeVar

from tallystick import anatomy
from tallystick.anatomy import Attending, Heads, Mixing, Part, Recurring, Scanning
from tallystick.blueprint import (
    MLP,
    Attention,
    ExpertStack,
    Group,
    Mixer,
    Model,
    Node,
    Norm,
    Parallel,
    Projection,
    Router,
    Scan,
    Shared,
    Stack,
    Tensor,
    Tower,
)
from tallystick.dims import expression_of
from tallystick.ledger import Axis, Entry

G = TypeVar("G", bound=Group)


def lay_out(model: Model, *, dtype: str) -> list[Entry]:
    """Every tensor of a model as an `Entry`, stacks rolled up, in printing order."""

    def walk(
        node: Node, name: str, role: str, active: Fraction | None, axes: tuple[Axis, ...], storage: str
    ) -> Iterator[Entry]:
        if isinstance(node, Tensor):
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
        storage = node.of if isinstance(node, Shared) else storage
        if isinstance(node, Group):
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


def attending(model: Model) -> tuple[Attending, ...]:
    """The attention of every layer, stacks rolled up, in printing order."""
    return tuple(
        Attending(name, axis.start, axis.length, node.heads)
        for name, axis, node in _found(model, Attention)
        if node.heads
    )


def recurring(model: Model) -> tuple[Recurring, ...]:
    """The scan of every layer that has one, stacks rolled up, in printing order."""
    return tuple(Recurring(name, axis.start, axis.length, node.keeps) for name, axis, node in _found(model, Scan))


def mixing(model: Model) -> tuple[Mixing, ...]:
    """What every layer multiplies beside its tensors and its attention, stacks rolled up, in printing order."""
    return tuple(
        Mixing(name, int(axis.start), int(axis.length), int(node.multiplications))
        for name, axis, node in _found(model, Mixer)
    )


def under(model: Model, kind: type[Group]) -> tuple[str, ...]:
    """How the names of all tensors begin that are in groups of a kind."""
    return tuple(f"{name}." for name, _, _ in _found(model, kind))


def _found(whole: Group, kind: type[G]) -> Iterator[tuple[str, Axis, G]]:
    """The groups of a kind inside another, by name, and in which layers they are."""

    def walk(node: Node, name: str, axis: Axis | None) -> Iterator[tuple[str, Axis, G]]:
        if isinstance(node, kind):
            yield name, axis or Axis(0, 1), node
        elif isinstance(node, Group) and not isinstance(node, Tower):
            for child, below in node.children.items():
                yield from walk(below, _within(name, child), axis)
        elif isinstance(node, Stack):
            start = 0
            for count, block in node.runs:
                if count:
                    yield from walk(block, f"{name}.{{}}", axis or Axis(start, count))
                start += int(count)

    return walk(whole, "", None)


def parts(model: Model) -> tuple[Part, ...]:
    """What runs, stacks rolled up, in printing order; nothing where MLPs or scans do not say how they run."""

    def walk(
        node: Node, name: str, layers: int, start: int | None, again: bool = False, within: bool = False
    ) -> Iterator[Part]:
        if isinstance(node, Tensor | ExpertStack | Tower):
            return
        if isinstance(node, Stack):
            first = 0
            for count, block in node.runs:
                if count:
                    yield from walk(block, f"{name}.{{}}", layers * int(count), first)
                first += int(count)
            return
        if what := _runs(node):
            yield Part(name, layers, what, start, again)
        if isinstance(node, Scan):
            return  # its projections and its norm are parts of it
        for child, inside in node.children.items():
            part_of = within or isinstance(node, Attention | MLP)
            if isinstance(inside, Projection) and part_of:
                continue  # a part of what that one runs
            shared = isinstance(node, Parallel) and _reads_again(node, child)
            yield from walk(_placed(inside, node), _within(name, child), layers, start, shared, part_of)

    told = any(mlp.runs for *_, mlp in _found(model, MLP)) or any(router.runs for *_, router in _found(model, Router))
    scans = all(isinstance(one.keeps.runs, Scanning) for one in recurring(model))
    return tuple(walk(model, "", 1, None)) if told and scans else ()


def _placed(node: Node, parent: Group) -> Node:
    """A norm inside an attention reads its heads; the same norm outside reads the token."""
    if isinstance(node, Norm) and isinstance(parent, Attention):
        return node.replace(runs=node.runs._replace(inner=True))
    return node


def _runs(node: Group) -> Any:
    """How a group runs by itself, None where only its children do."""
    if isinstance(node, Attention) and node.heads:
        return _reading(node, node.heads)
    if isinstance(node, Scan):
        return node.keeps.runs
    return getattr(node, "runs", None)


def _reading(node: Attention, heads: Heads) -> anatomy.Reading:
    """Which projections of an attention read the token, told by the formulas of their widths.

    One, the output, reads what all heads give. Of the others, those that read as much as the first read the token.
    """
    reads = [projection.runs.reads for _, _, projection in _found(node, Projection)]
    given = heads.queries * heads.value_size
    likeness = [(width == given, expression_of(width) == expression_of(given)) for width in reads]
    reads.pop(likeness.index(max(likeness)))
    token, *others = reads
    waists = tuple(width for width in others if expression_of(width) != expression_of(token))
    return anatomy.Reading(heads, token, len(reads) - len(waists), waists)


def _reads_again(block: Parallel, name: str) -> bool:
    """Whether another child reads the same: the first norm, or the attention where both are behind one norm."""
    norms = [child for child, node in block.children.items() if isinstance(node, Norm)]
    return name in norms[1:] or (isinstance(block.children[name], MLP) and len(norms) == 1)
