"""The modules that an architecture is written with, named as ``torch.nn`` and ``print(model)`` name them; nothing is allocated.

>>> from tallystick.core import nodes as nn
>>> block = nn.Module(ln_1=nn.LayerNorm(4), mlp=nn.MLP(c_fc=nn.Linear(4, 16)))
>>> model = nn.Model(h=nn.Repeat(2, block))

An architecture (``architectures/``) builds a `Model` from a `Config`. Sizes are `Dim`s, so the model holds the formula as
well as the numbers. ``layout.py`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

from tallystick.core import anatomy
from tallystick.core.anatomy import (
    EVERYTHING,
    ChunkedScan,
    Compressor,
    DeltaRule,
    FeedForward,
    Heads,
    Indexer,
    Recurrence,
    Routing,
    SequentialScan,
    Windows,
)

__all__ = [
    "EVERYTHING",
    "MLP",
    "Attention",
    "Buffer",
    "ChunkedScan",
    "Compressor",
    "Conv1D",
    "DeltaRule",
    "Dropout",
    "Embedding",
    "ExpertList",
    "Experts",
    "FeedForward",
    "Head",
    "Heads",
    "Indexer",
    "IndexerModule",
    "LayerNorm",
    "Linear",
    "Model",
    "Module",
    "ModuleList",
    "Node",
    "Norm",
    "ParallelBlock",
    "Parameter",
    "PositionEmbedding",
    "Projection",
    "RMSNorm",
    "Recurrence",
    "Repeat",
    "Router",
    "Routing",
    "Scan",
    "SequentialScan",
    "Shared",
    "Tensor",
    "TokenMixer",
    "Tower",
    "Windows",
    "rebuilt",
]


class Tensor(NamedTuple):
    """A leaf. Without a role of its own it takes that of the group around it."""

    shape: tuple[int, ...]
    role: str | None = None
    buffer: bool = False
    trainable: bool = True


class Frozen:
    """A node never changes once it is built, so that one may stand in several places of a model, or of several models."""

    def _hold(self, **fields: Any) -> None:
        """Set fields while the node is built."""
        self.__dict__.update(fields)

    def replace(self, **fields: Any) -> Self:
        """A copy with other fields: ``attention.replace(heads=None)``."""
        copy = object.__new__(type(self))
        copy._hold(**{**self.__dict__, **fields})
        return copy

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: take node.replace({name}=...) instead")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")


class Module(Frozen):
    """Named children, in the order in which the model prints them; None children are left out.

    `role` is what the tensors inside are for, unless they say otherwise. `active` is the share of
    them that one token uses; None is all.
    """

    role: str | None = None
    active: Fraction | None = None
    children: Mapping[str, Node]

    def __init__(self, /, **children: Node | None) -> None:  # a child may be named self: BERT's is
        self._hold(children=_named(children))

    def with_children(self, /, **children: Node | None) -> Self:
        """A copy with these children in place of those of their names, or after all others; without those that are None."""
        return self.replace(children=_named({**self.children, **children}))


def _named(children: Mapping[str, Node | None]) -> Mapping[str, Node]:
    return MappingProxyType({name: child for name, child in children.items() if child is not None})


class Attention(Module):
    """What lets positions see one another, projections included; `heads` is how it runs."""

    role = "attention"
    heads: Heads | None

    def __init__(self, heads: Heads | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(heads=heads)


class MLP(Module):
    """What each position goes through on its own; `runs` is how."""

    role = "mlp"
    runs: FeedForward | None

    def __init__(self, runs: FeedForward | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Router(Module):
    """What scores the experts for a token; `runs` is how it and they do."""

    role = "router"
    runs: Routing | None

    def __init__(self, runs: Routing | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Scan(Module):
    """What reads token after token and carries a state along, as Mamba does; `keeps` is that state."""

    role = "ssm"
    keeps: Recurrence

    def __init__(self, keeps: Recurrence, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(keeps=keeps)


class Tower(Module):
    """What reads images or sound, and brings what it found among the tokens: no token goes through it."""


class IndexerModule(Module):
    """What chooses the positions that an attention reads: parameters, but no gradient goes through a choice."""


class TokenMixer(Module):
    """What multiplies a token with what it computed of it, beside its own tensors: `multiplications` of each token."""

    multiplications: int

    def __init__(self, multiplications: int, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(multiplications=multiplications)


class ParallelBlock(Module):
    """A block whose attention and MLP run side by side, on one input."""


class Experts(Module):
    """Expert weights of which a token uses `used` in `of`; the shapes hold all of them."""

    role = "experts"

    def __init__(self, used: int, of: int, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(active=Fraction(int(used), int(of)))


class ModuleList(Frozen):
    """Blocks numbered from 0 on: so many of the first kind, then so many of the next."""

    role: str | None = None
    active: Fraction | None = None
    runs: tuple[tuple[int, Module | Tensor], ...]

    def __init__(self, *runs: tuple[int, Module | Tensor]) -> None:
        self._hold(runs=runs)


class ExpertList(ModuleList):
    """Experts held one by one, numbered from 0, of which a token uses `used`."""

    role = "experts"

    def __init__(self, used: int, of: int, expert: Module) -> None:
        super().__init__((of, expert))
        self._hold(active=Fraction(int(used), int(of)))


class Shared(Module):
    """Tensors that are one with those of the place `of`, which may be this one: `of` is its whole name.

    There is one such place, so a stack holds it as a run of one block, and no stack is inside of it.
    """

    of: str

    def __init__(self, of: str, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(of=of)


class Model(Module):
    """The whole. `tie` names two tensors that are one, the second of which holds the storage; or maps many such.

    `irregular` says, where not every product takes each token once, which ones do not.
    """

    ties: Mapping[str, str]
    irregular: str

    def __init__(
        self, irregular: str = "", /, *, tie: tuple[str, str] | Mapping[str, str] | None = None, **children: Node | None
    ) -> None:
        super().__init__(**children)
        self._hold(ties=MappingProxyType(dict([tie] if isinstance(tie, tuple) else tie or {})), irregular=irregular)


Node: TypeAlias = Tensor | Module | ModuleList
G = TypeVar("G", bound=Module)


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree anew, each node of it what `change` makes of it, leaves first."""
    if isinstance(node, Module):
        node = node.replace(children=_named({name: rebuilt(child, change) for name, child in node.children.items()}))
    elif isinstance(node, ModuleList):
        node = node.replace(runs=tuple((count, rebuilt(block, change)) for count, block in node.runs))
    return change(node)


def Repeat(count: int, block: Module) -> ModuleList:
    """`count` equal blocks, numbered from 0."""
    return ModuleList((count, block))


class Projection(Module):
    """A matrix product: `runs` is what it reads."""

    runs: anatomy.Projection

    def __init__(self, runs: anatomy.Projection, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Norm(Module):
    """A norm: `runs` is what it computes."""

    runs: anatomy.Norm

    def __init__(self, runs: anatomy.Norm, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Dropout(Module):
    """Zeroes a share of so many elements of a token, in training."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self._hold(runs=anatomy.Dropout(width) if share else None)


def Linear(inputs: int, outputs: int, *, bias: bool = True) -> Module:
    """``nn.Linear``: weight (outputs, inputs), bias (outputs)."""
    return Projection(
        anatomy.Projection(inputs),
        weight=Parameter((outputs, inputs)),
        bias=Parameter((outputs,)) if bias else None,
    )


def Conv1D(inputs: int, outputs: int) -> Module:
    """GPT-2's transposed linear: weight (inputs, outputs), bias (outputs)."""
    return Projection(anatomy.Projection(inputs), weight=Parameter((inputs, outputs)), bias=Parameter((outputs,)))


def Embedding(rows: int, width: int) -> Module:
    """Token embedding: weight (rows, width)."""
    return Module(weight=Parameter((rows, width), "token_embedding"))


def PositionEmbedding(rows: int, width: int) -> Module:
    """Learned positions: weight (rows, width)."""
    return Module(weight=Parameter((rows, width), "position_embedding"))


def LayerNorm(width: int, *, scale: bool = True, bias: bool = True, times: int = 1, kind: str = "layer") -> Module:
    """Scale `weight` and shift `bias`, each (width); `times` groups of a token share them; `kind` as in `anatomy.Norm`."""
    return Norm(
        anatomy.Norm(kind, width, times),
        weight=Parameter((width,), "norm") if scale else None,
        bias=Parameter((width,), "norm") if bias else None,
    )


def RMSNorm(width: int, *, kind: str = "rms", times: int = 1, after: bool = False, turned: bool = False) -> Module:
    """Scale `weight` (width) alone; `kind`, `after` and `turned` as in `anatomy.Norm`, `times` as in `LayerNorm`."""
    return Norm(anatomy.Norm(kind, width, times, after=after, turned=turned), weight=Parameter((width,), "norm"))


def Head(width: int, vocabulary: int, *, bias: bool = False, capped: bool = False) -> Module:
    """The projection to the vocabulary: weight (vocabulary, width), bias (vocabulary)."""
    return Projection(
        anatomy.Projection(width, vocabulary if capped else 0),
        weight=Parameter((vocabulary, width), "head"),
        bias=Parameter((vocabulary,), "head") if bias else None,
    )


def Parameter(shape: tuple[int, ...], role: str | None = None, *, trainable: bool = True) -> Tensor:
    """A parameter of a shape; without a role of its own it has that of the module around it."""
    return Tensor(shape, role, trainable=trainable)


def Buffer(*shape: int, role: str | None = None) -> Tensor:
    """A tensor of the state dict that is no parameter."""
    return Tensor(shape, role, buffer=True)
