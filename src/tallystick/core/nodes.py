"""Modules that architectures are written with, as in ``torch.nn``; no weights are allocated.

>>> from tallystick.core import nodes as nn
>>> block = nn.Module(ln_1=nn.LayerNorm(4), mlp=nn.MLP(c_fc=nn.Linear(4, 16)))
>>> model = nn.Model(h=nn.Repeat(2, block))

An architecture (``architectures/``) builds a `Model` from a `Config`. Sizes are `Dim`s, so the
model holds the formula as well as the numbers. ``layout.py`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

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

if TYPE_CHECKING:
    from fractions import Fraction

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
    """A leaf of the tree. Without a role of its own it has the role of its module."""

    shape: tuple[int, ...]
    role: str | None = None
    buffer: bool = False
    trainable: bool = True


class Frozen:
    """An immutable node, which may occur several times in a model or in several models."""

    def _hold(self, **fields: Any) -> None:
        """Set fields while the node is built."""
        self.__dict__.update(fields)

    def replace(self, **fields: Any) -> Self:
        """Return a copy with other fields: ``attention.replace(heads=None)``."""
        copy = object.__new__(type(self))
        copy._hold(**{**self.__dict__, **fields})
        return copy

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: take node.replace({name}=...) instead")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")


class Module(Frozen):
    """Named children, in printing order of the model; None children are left out.

    `role` applies to the tensors inside, unless they state another. `active` is the share of
    them that one token uses; None is all.
    """

    role: str | None = None
    active: Fraction | None = None
    children: Mapping[str, Node]

    def __init__(self, /, **children: Node | None) -> None:  # a child may be named self, as in BERT
        self._hold(children=_named(children))

    def with_children(self, /, **children: Node | None) -> Self:
        """Return a copy with these children added, or replaced by name; None removes a child."""
        return self.replace(children=_named({**self.children, **children}))


def _named(children: Mapping[str, Node | None]) -> Mapping[str, Node]:
    return MappingProxyType({name: child for name, child in children.items() if child is not None})


class Attention(Module):
    """Attention with its projections; `heads` describes how it runs."""

    role = "attention"
    heads: Heads | None

    def __init__(self, heads: Heads | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(heads=heads)


class MLP(Module):
    """MLP of each position; `runs` describes how it runs."""

    role = "mlp"
    runs: FeedForward | None

    def __init__(self, runs: FeedForward | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Router(Module):
    """Router, which scores the experts for each token; `runs` describes router and experts."""

    role = "router"
    runs: Routing | None

    def __init__(self, runs: Routing | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Scan(Module):
    """Recurrent layer such as Mamba, which carries a state over tokens; `keeps` is that state."""

    role = "ssm"
    keeps: Recurrence

    def __init__(self, keeps: Recurrence, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(keeps=keeps)


class Tower(Module):
    """Vision or audio tower: its outputs join the token sequence; no text token goes through it."""


class IndexerModule(Module):
    """Sparse-attention indexer. Its parameters get no gradient, since a selection passes none."""


class TokenMixer(Module):
    """Module that multiplies activations with each other: `multiplications` for each token."""

    multiplications: int

    def __init__(self, multiplications: int, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(multiplications=multiplications)


class ParallelBlock(Module):
    """Block whose attention and MLP run in parallel on one input."""


class Experts(Module):
    """Stacked expert weights; each token is routed to `used` of the `of` experts.

    Shapes include the expert dimension.
    """

    role = "experts"

    def __init__(self, used: int, of: int, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(active=_share(used, of))


class ModuleList(Frozen):
    """Blocks numbered from 0: runs of (count, block), one run for each kind of block."""

    role: str | None = None
    active: Fraction | None = None
    runs: tuple[tuple[int, Module | Tensor], ...]

    def __init__(self, *runs: tuple[int, Module | Tensor]) -> None:
        self._hold(runs=runs)


class ExpertList(ModuleList):
    """Experts as single modules, numbered from 0; each token is routed to `used` of them."""

    role = "experts"

    def __init__(self, used: int, of: int, expert: Module) -> None:
        super().__init__((of, expert))
        self._hold(active=_share(used, of))


def _share(used: int, of: int) -> Fraction:
    from fractions import Fraction  # a slow import that dense models do not need

    return Fraction(int(used), int(of))


class Shared(Module):
    """Tensors that share the storage of another place: `of` is that place's full name.

    A place may name itself. It is a single place, so a stack holds it as a run of one block, and it
    has no stack inside.
    """

    of: str

    def __init__(self, of: str, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(of=of)


class Model(Module):
    """The whole model.

    Args:
        irregular: in words, the products that do not process each token exactly once.
        tie: two tied tensor names, the second of which owns the storage; or a mapping of pairs.
        **children: the model's top-level modules.
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
    """Return a new tree in which each node is replaced by `change(node)`, leaves first."""
    if isinstance(node, Module):
        node = node.replace(children=_named({name: rebuilt(child, change) for name, child in node.children.items()}))
    elif isinstance(node, ModuleList):
        node = node.replace(runs=tuple((count, rebuilt(block, change)) for count, block in node.runs))
    return change(node)


def Repeat(count: int, block: Module) -> ModuleList:
    """Return `count` equal blocks, numbered from 0."""
    return ModuleList((count, block))


class Projection(Module):
    """Matrix product; `runs` describes its input."""

    runs: anatomy.Projection

    def __init__(self, runs: anatomy.Projection, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Norm(Module):
    """Normalisation; `runs` describes its computation."""

    runs: anatomy.Norm

    def __init__(self, runs: anatomy.Norm, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Dropout(Module):
    """Dropout of a `share` of a token's `width` elements, in training."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self._hold(runs=anatomy.Dropout(width) if share else None)


def Linear(inputs: int, outputs: int, *, bias: bool = True) -> Module:
    """Return an ``nn.Linear``: weight (outputs, inputs), bias (outputs)."""
    return Projection(
        anatomy.Projection(inputs),
        weight=Parameter((outputs, inputs)),
        bias=Parameter((outputs,)) if bias else None,
    )


def Conv1D(inputs: int, outputs: int) -> Module:
    """Return GPT-2's transposed linear: weight (inputs, outputs), bias (outputs)."""
    return Projection(anatomy.Projection(inputs), weight=Parameter((inputs, outputs)), bias=Parameter((outputs,)))


def Embedding(rows: int, width: int) -> Module:
    """Return a token embedding: weight (rows, width)."""
    return Module(weight=Parameter((rows, width), "token_embedding"))


def PositionEmbedding(rows: int, width: int) -> Module:
    """Return learned position embeddings: weight (rows, width)."""
    return Module(weight=Parameter((rows, width), "position_embedding"))


def LayerNorm(width: int, *, scale: bool = True, bias: bool = True, times: int = 1, kind: str = "layer") -> Module:
    """Return a LayerNorm: scale `weight` and shift `bias`, each (width).

    Args:
        width: elements that share one mean.
        scale: whether it has a weight.
        bias: whether it has a bias.
        times: groups of `width` elements in a token, which share weight and bias.
        kind: as in `anatomy.Norm`.
    """
    return Norm(
        anatomy.Norm(kind, width, times),
        weight=Parameter((width,), "norm") if scale else None,
        bias=Parameter((width,), "norm") if bias else None,
    )


def RMSNorm(width: int, *, kind: str = "rms", times: int = 1, after: bool = False, turned: bool = False) -> Module:
    """Return an RMSNorm: scale `weight` (width) and no shift.

    Args:
        width: elements that share one mean.
        kind: as in `anatomy.Norm`.
        times: groups of `width` elements in a token, which share the weight.
        after: as in `anatomy.Norm`.
        turned: as in `anatomy.Norm`.
    """
    return Norm(anatomy.Norm(kind, width, times, after=after, turned=turned), weight=Parameter((width,), "norm"))


def Head(width: int, vocabulary: int, *, bias: bool = False, capped: bool = False) -> Module:
    """Return the LM head: weight (vocabulary, width), bias (vocabulary).

    Args:
        width: elements of the hidden state.
        vocabulary: tokens in the vocabulary.
        bias: whether it has a bias.
        capped: whether a tanh caps the logits.
    """
    return Projection(
        anatomy.Projection(width, vocabulary if capped else 0),
        weight=Parameter((vocabulary, width), "head"),
        bias=Parameter((vocabulary,), "head") if bias else None,
    )


def Parameter(shape: tuple[int, ...], role: str | None = None, *, trainable: bool = True) -> Tensor:
    """Return a parameter.

    Args:
        shape: its sizes.
        role: one of `ROLES`; None takes the role of the module around it.
        trainable: whether it gets gradients.
    """
    return Tensor(shape, role, trainable=trainable)


def Buffer(*shape: int, role: str | None = None) -> Tensor:
    """Return a tensor of the state dict that is not a parameter."""
    return Tensor(shape, role, buffer=True)
