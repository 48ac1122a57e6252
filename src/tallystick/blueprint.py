"""A model written down as it prints: modules by name, tensors by shape, nothing allocated.

>>> block = Group(ln_1=LayerNorm(4), mlp=MLP(c_fc=Linear(4, 16)))
>>> [entry.name for entry in lay_out(Model(h=Repeat(2, block)), dtype="float32")]
['h.{}.ln_1.weight', 'h.{}.ln_1.bias', 'h.{}.mlp.c_fc.weight', 'h.{}.mlp.c_fc.bias']

An architecture (``architectures/``) builds one from a `Config`; sizes are `Dim`, so the layout
holds the formula as well as the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tallystick import anatomy
from tallystick.anatomy import Attending, Feed, Heads, Mixing, Part, Recurrence, Recurring, Routing, Scanning
from tallystick.config import REQUIRED, Config, for_layers, maybe, natural
from tallystick.dims import expression_of
from tallystick.ledger import Axis, Entry

__all__ = [
    "MLP",
    "REQUIRED",
    "Attention",
    "Buffer",
    "Config",
    "Conv1D",
    "Dropout",
    "Embedding",
    "ExpertStack",
    "Experts",
    "Feed",
    "Group",
    "Head",
    "Heads",
    "LayerNorm",
    "Linear",
    "Mixer",
    "Model",
    "Node",
    "Norm",
    "Parallel",
    "PositionEmbedding",
    "RMSNorm",
    "Recurrence",
    "Repeat",
    "Router",
    "Routing",
    "Scan",
    "Scanning",
    "Stack",
    "Tensor",
    "architecture",
    "for_layers",
    "maybe",
    "natural",
]  # fmt: skip

# -- the pieces -----------------------------------------------------------------------------------


class Tensor(NamedTuple):
    """A leaf. Without a role of its own it takes that of the group around it."""

    shape: tuple[int, ...]
    role: str | None = None
    buffer: bool = False
    trainable: bool = True


class Group:
    """Named children, in the order in which the model prints them; None children are left out.

    `role` is what the tensors inside are for, unless they say otherwise. `active` is the share of
    them that one token uses; None is all.
    """

    role: str | None = None
    active: Fraction | None = None

    def __init__(self, **children: Node | None) -> None:
        self.children = {name: child for name, child in children.items() if child is not None}


class Attention(Group):
    """What lets positions see one another, projections included; `heads` is how it runs."""

    role = "attention"

    def __init__(self, heads: Heads | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self.heads = heads
        for child in self.children.values():
            if isinstance(child, Norm):
                child.runs = child.runs._replace(inner=True)


class MLP(Group):
    """What each position goes through on its own; `runs` is how."""

    role = "mlp"

    def __init__(self, runs: Feed | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self.runs = runs


class Router(Group):
    """What scores the experts for a token; `runs` is how it and they do."""

    role = "router"

    def __init__(self, runs: Routing | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self.runs = runs


class Scan(Group):
    """What reads token after token and carries a state along: Mamba and kin; `keeps` is that state."""

    role = "ssm"

    def __init__(self, keeps: Recurrence, /, **children: Node | None) -> None:
        super().__init__(**children)
        self.keeps = keeps


class Mixer(Group):
    """What multiplies a token with what it computed of it, beside its own tensors: `multiplications` of each token."""

    def __init__(self, multiplications: int, /, **children: Node | None) -> None:
        super().__init__(**children)
        self.multiplications = multiplications


class Parallel(Group):
    """A block whose attention and MLP run side by side, on one input."""


class Experts(Group):
    """Expert weights of which a token uses `used` in `of`; the shapes hold all of them."""

    role = "experts"

    def __init__(self, used: int, of: int, **children: Node | None) -> None:
        super().__init__(**children)
        self.active = Fraction(int(used), int(of))


class Stack:
    """Blocks numbered from 0 on: so many of the first kind, then so many of the next."""

    role: str | None = None
    active: Fraction | None = None

    def __init__(self, *runs: tuple[int, Group]) -> None:
        self.runs = runs


class ExpertStack(Stack):
    """Experts held one by one, numbered from 0, of which a token uses `used`."""

    role = "experts"

    def __init__(self, used: int, of: int, expert: Group) -> None:
        super().__init__((of, expert))
        self.active = Fraction(int(used), int(of))


class Model(Group):
    """The whole. `tie` names two tensors that are one: the second holds the storage."""

    def __init__(self, *, tie: tuple[str, str] | None = None, **children: Node | None) -> None:
        super().__init__(**children)
        self.tie = tie


Node: TypeAlias = Tensor | Group | Stack
G = TypeVar("G", bound=Group)


def Repeat(count: int, block: Group) -> Stack:
    """`count` equal blocks, numbered from 0."""
    return Stack((count, block))


class Projection(Group):
    """A matrix product: `runs` is what it reads."""

    def __init__(self, runs: anatomy.Projection, **children: Node | None) -> None:
        super().__init__(**children)
        self.runs = runs


class Norm(Group):
    """A norm: `runs` is what it computes."""

    def __init__(self, runs: anatomy.Norm, **children: Node | None) -> None:
        super().__init__(**children)
        self.runs = runs


class Dropout(Group):
    """Zeroes a share of so many elements of a token, in training."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self.runs = anatomy.Dropout(width) if share else None


def Linear(inputs: int, outputs: int, *, bias: bool = True) -> Group:
    """``nn.Linear``: weight (outputs, inputs), bias (outputs)."""
    return Projection(
        anatomy.Projection(inputs),
        weight=Tensor((outputs, inputs)),
        bias=Tensor((outputs,)) if bias else None,
    )


def Conv1D(inputs: int, outputs: int) -> Group:
    """GPT-2's transposed linear: weight (inputs, outputs), bias (outputs)."""
    return Projection(anatomy.Projection(inputs), weight=Tensor((inputs, outputs)), bias=Tensor((outputs,)))


def Embedding(rows: int, width: int) -> Group:
    """Token embedding: weight (rows, width)."""
    return Group(weight=Tensor((rows, width), "token_embedding"))


def PositionEmbedding(rows: int, width: int) -> Group:
    """Learned positions: weight (rows, width)."""
    return Group(weight=Tensor((rows, width), "position_embedding"))


def LayerNorm(width: int, *, scale: bool = True, bias: bool = True, times: int = 1, kind: str = "layer") -> Group:
    """Scale `weight` and shift `bias`, each (width); `times` groups of a token share them; `kind` as in `anatomy.Norm`."""
    return Norm(
        anatomy.Norm(kind, width, times),
        weight=Tensor((width,), "norm") if scale else None,
        bias=Tensor((width,), "norm") if bias else None,
    )


def RMSNorm(width: int, *, kind: str = "rms", times: int = 1, after: bool = False, turned: bool = False) -> Group:
    """Scale `weight` (width) alone; `kind`, `after` and `turned` as in `anatomy.Norm`, `times` as in `LayerNorm`."""
    return Norm(anatomy.Norm(kind, width, times, after=after, turned=turned), weight=Tensor((width,), "norm"))


def Head(width: int, vocabulary: int, *, bias: bool = False, capped: bool = False) -> Group:
    """The projection to the vocabulary: weight (vocabulary, width), bias (vocabulary)."""
    return Projection(
        anatomy.Projection(width, vocabulary if capped else 0),
        weight=Tensor((vocabulary, width), "head"),
        bias=Tensor((vocabulary,), "head") if bias else None,
    )


def Buffer(*shape: int) -> Tensor:
    """A tensor of the state dict that is no parameter."""
    return Tensor(shape, buffer=True)


# -- from a blueprint to entries ------------------------------------------------------------------


def lay_out(model: Model, *, dtype: str) -> list[Entry]:
    """Every tensor of a model as an `Entry`, stacks rolled up, in printing order."""
    target, source = model.tie or (None, None)

    def walk(node: Node, name: str, role: str, active: Fraction | None, axes: tuple[Axis, ...]) -> Iterator[Entry]:
        if isinstance(node, Tensor):
            tied = name == target
            yield Entry(
                name=name,
                shape=node.shape,
                role=node.role or role,
                dtype=dtype,
                storage=source if tied and source else name,
                unique=0 if tied else int(math.prod(node.shape)),
                trainable=node.trainable,
                buffer=node.buffer,
                active=active,
                axes=axes,
            )
            return
        role, active = node.role or role, node.active or active
        if isinstance(node, Group):
            for child, below in node.children.items():
                yield from walk(below, f"{name}.{child}" if name else child, role, active, axes)
            return
        start = 0
        for count, block in node.runs:
            if count:
                yield from walk(block, f"{name}.{{}}", role, active, (*axes, Axis(start, count)))
            start += int(count)

    return list(walk(model, "", "other", None, ()))


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


def _found(model: Model, kind: type[G]) -> Iterator[tuple[str, Axis, G]]:
    """The groups of a kind, by name, and in which layers they are."""

    def walk(node: Node, name: str, axis: Axis | None) -> Iterator[tuple[str, Axis, G]]:
        if isinstance(node, kind):
            yield name, axis or Axis(0, 1), node
        elif isinstance(node, Group):
            for child, below in node.children.items():
                yield from walk(below, f"{name}.{child}" if name else child, axis)
        elif isinstance(node, Stack):
            start = 0
            for count, block in node.runs:
                if count:
                    yield from walk(block, f"{name}.{{}}", axis or Axis(start, count))
                start += int(count)

    return walk(model, "", None)


def parts(model: Model) -> tuple[Part, ...]:
    """What runs, stacks rolled up, in printing order; nothing where MLPs or scans do not say how they run."""

    def walk(
        node: Node, name: str, layers: int, start: int | None, again: bool = False, within: bool = False
    ) -> Iterator[Part]:
        if isinstance(node, Tensor | ExpertStack):
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
            shared = isinstance(node, Parallel) and _reads_again(node, inside)
            yield from walk(inside, f"{name}.{child}" if name else child, layers, start, shared, part_of)

    found = tuple(walk(model, "", 1, None))
    told = any(isinstance(part.what, Feed | Routing) for part in found)
    return found if told and all(one.keeps.runs for one in recurring(model)) else ()


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
    reads = [child.runs.reads for child in node.children.values() if isinstance(child, Projection)]
    given = heads.queries * heads.value_size
    likeness = [(width == given, expression_of(width) == expression_of(given)) for width in reads]
    reads.pop(likeness.index(max(likeness)))
    token, *others = reads
    waists = tuple(width for width in others if expression_of(width) != expression_of(token))
    return anatomy.Reading(heads, token, len(reads) - len(waists), waists)


def _reads_again(block: Parallel, node: Node) -> bool:
    """Whether another child reads the same: the first norm, or the attention where both are behind one norm."""
    norms = [child for child in block.children.values() if isinstance(child, Norm)]
    return node in norms[1:] or (isinstance(node, MLP) and len(norms) == 1)


# -- the registry ---------------------------------------------------------------------------------


class Architecture(NamedTuple):
    """One family: how a config of its `model_type` becomes a blueprint."""

    name: str  # the config's model_type
    class_name: str  # the class that transformers, or the book, builds; "" where there is none
    keys: Mapping[str, Any]  # the config keys that it reads, as `Config` declares them
    aliases: Mapping[str, str]  # other names of those keys
    build: Callable[[Config], Model]
    running: Mapping[str, Any] = {}  # keys that change no tensor, and what it costs to run


REGISTRY: dict[str, Architecture] = {}


def architecture(
    name: str,
    class_name: str = "",
    *,
    aliases: Mapping[str, str] | None = None,
    running: Mapping[str, Any] | None = None,
    **keys: Any,
) -> Callable[[Callable[[Config], Model]], Callable[[Config], Model]]:
    """Register a family: the decorated function reads a `Config` and returns the `Model`.

    `keys` are the config keys that change a tensor, with the defaults of its type (see `Config`); `running` those that
    change no tensor, and how the model runs. The file
    ``architectures/NAME.py`` that holds it is found by its name: nothing else needs an edit.
    """

    def register(build: Callable[[Config], Model]) -> Callable[[Config], Model]:
        REGISTRY[name] = Architecture(name, class_name, keys, aliases or {}, build, running or {})
        return build

    return register
