"""A model written down as it prints: modules by name, tensors by shape, nothing allocated.

>>> model = Model(h=Repeat(2, Group(ln_1=LayerNorm(4), mlp=MLP(c_fc=Linear(4, 16)))))

An architecture (``architectures/``) builds one from a `Config`; sizes are `Dim`, so the model
holds the formula as well as the numbers. ``layout.py`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

from tallystick import anatomy
from tallystick.anatomy import Compressor, Feed, Heads, Indexer, Recurrence, Routing, Scanning
from tallystick.config import REQUIRED, TIE, Config, Part, for_layers, maybe, natural, or_word

__all__ = [
    "MLP",
    "REQUIRED",
    "Attention",
    "Buffer",
    "Chooser",
    "Compressor",
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
    "Indexer",
    "LayerNorm",
    "Linear",
    "Mixer",
    "Model",
    "Node",
    "Norm",
    "Parallel",
    "Part",
    "PositionEmbedding",
    "RMSNorm",
    "Recurrence",
    "Repeat",
    "Router",
    "Routing",
    "Scan",
    "Scanning",
    "Shared",
    "Sibling",
    "Stack",
    "Tensor",
    "Tower",
    "architecture",
    "for_layers",
    "maybe",
    "natural",
    "or_word",
    "part_of",
    "rebuilt",
]  # fmt: skip

# -- the pieces -----------------------------------------------------------------------------------


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


class Group(Frozen):
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


class Attention(Group):
    """What lets positions see one another, projections included; `heads` is how it runs."""

    role = "attention"
    heads: Heads | None

    def __init__(self, heads: Heads | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(heads=heads)


class MLP(Group):
    """What each position goes through on its own; `runs` is how."""

    role = "mlp"
    runs: Feed | None

    def __init__(self, runs: Feed | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Router(Group):
    """What scores the experts for a token; `runs` is how it and they do."""

    role = "router"
    runs: Routing | None

    def __init__(self, runs: Routing | None = None, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Scan(Group):
    """What reads token after token and carries a state along: Mamba and kin; `keeps` is that state."""

    role = "ssm"
    keeps: Recurrence

    def __init__(self, keeps: Recurrence, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(keeps=keeps)


class Tower(Group):
    """What reads images or sound, and brings what it found among the tokens: no token goes through it."""


class Chooser(Group):
    """What chooses the positions that an attention reads: parameters, but no gradient goes through a choice."""


class Mixer(Group):
    """What multiplies a token with what it computed of it, beside its own tensors: `multiplications` of each token."""

    multiplications: int

    def __init__(self, multiplications: int, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(multiplications=multiplications)


class Parallel(Group):
    """A block whose attention and MLP run side by side, on one input."""


class Experts(Group):
    """Expert weights of which a token uses `used` in `of`; the shapes hold all of them."""

    role = "experts"

    def __init__(self, used: int, of: int, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(active=Fraction(int(used), int(of)))


class Stack(Frozen):
    """Blocks numbered from 0 on: so many of the first kind, then so many of the next."""

    role: str | None = None
    active: Fraction | None = None
    runs: tuple[tuple[int, Group | Tensor], ...]

    def __init__(self, *runs: tuple[int, Group | Tensor]) -> None:
        self._hold(runs=runs)


class ExpertStack(Stack):
    """Experts held one by one, numbered from 0, of which a token uses `used`."""

    role = "experts"

    def __init__(self, used: int, of: int, expert: Group) -> None:
        super().__init__((of, expert))
        self._hold(active=Fraction(int(used), int(of)))


class Shared(Group):
    """Tensors that are one with those of the place `of`, which may be this one: `of` is its whole name.

    There is one such place, so a stack holds it as a run of one block, and no stack is inside of it.
    """

    of: str

    def __init__(self, of: str, /, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(of=of)


class Model(Group):
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


Node: TypeAlias = Tensor | Group | Stack
G = TypeVar("G", bound=Group)


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree anew, each node of it what `change` makes of it, leaves first."""
    if isinstance(node, Group):
        node = node.replace(children=_named({name: rebuilt(child, change) for name, child in node.children.items()}))
    elif isinstance(node, Stack):
        node = node.replace(runs=tuple((count, rebuilt(block, change)) for count, block in node.runs))
    return change(node)


def Repeat(count: int, block: Group) -> Stack:
    """`count` equal blocks, numbered from 0."""
    return Stack((count, block))


class Projection(Group):
    """A matrix product: `runs` is what it reads."""

    runs: anatomy.Projection

    def __init__(self, runs: anatomy.Projection, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Norm(Group):
    """A norm: `runs` is what it computes."""

    runs: anatomy.Norm

    def __init__(self, runs: anatomy.Norm, **children: Node | None) -> None:
        super().__init__(**children)
        self._hold(runs=runs)


class Dropout(Group):
    """Zeroes a share of so many elements of a token, in training."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self._hold(runs=anatomy.Dropout(width) if share else None)


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


# -- the registry ---------------------------------------------------------------------------------


class Sibling(NamedTuple):
    """Another class of a type than its language model, and made of that: the same body, with another head, none, or more beside it."""

    make: Callable[[Config, Model], Model]
    head: str = ""  # what it has in place of the LM head, in words; "" where it has that one
    keys: Mapping[str, Any] = {}  # those that it reads beside the language model's, and their other names
    aliases: Mapping[str, str] = {}
    parts: Mapping[str, Part] = {}  # as in `Architecture`


class Architecture(NamedTuple):
    """One family: how a config of its `model_type` becomes a blueprint."""

    name: str  # the config's model_type
    class_name: str  # the class that transformers, or the book, builds; "" where there is none
    keys: Mapping[str, Any]  # the config keys that it reads, as `Config` declares them
    aliases: Mapping[str, str]  # other names of those keys
    build: Callable[[Config], Model]
    running: Mapping[str, Any] = {}  # keys that change no tensor, and what it costs to run
    siblings: Mapping[str, Sibling] | None = None  # by how the names of the classes end; None: those of a decoder
    # Keys that hold configs, whose own are among `keys` and `running` under dotted names.
    parts: Mapping[str, Part] = {}


REGISTRY: dict[str, Architecture] = {}


def architecture(
    name: str,
    class_name: str = "",
    *,
    aliases: Mapping[str, str] | None = None,
    running: Mapping[str, Any] | None = None,
    siblings: Mapping[str, Sibling] | None = None,
    parts: Mapping[str, Part] | None = None,
    **keys: Any,
) -> Callable[[Callable[[Config], Model]], Callable[[Config], Model]]:
    """Register a family: the decorated function reads a `Config` and returns the `Model`.

    `keys` are the config keys that change a tensor, with the defaults of its type (see `Config`); `running` those that
    change no tensor, and how the model runs; `siblings` as in `Architecture`; `parts` are the keys that hold configs, which
    the function reads by `Config.part`. The file ``architectures/NAME.py`` that
    holds it is found by its name: nothing else needs an edit.
    """

    def register(build: Callable[[Config], Model]) -> Callable[[Config], Model]:
        inside = parts or {}
        REGISTRY[name] = Architecture(
            name,
            class_name,
            {**keys, **{part: None for part in inside if inside[part].optional}, **_dotted(inside, "keys")},
            {**(aliases or {}), **_dotted(inside, "aliases")},
            build,
            {**(running or {}), **_dotted(inside, "running")},
            None if siblings is None else {ending: _flat(sibling) for ending, sibling in siblings.items()},
            inside,
        )
        return build

    return register


def part_of(
    model_type: str,
    *,
    tied_above: bool = False,
    own_type: bool = False,
    unstated: Mapping[str, Any] | None = None,
    **defaults: Any,
) -> Part:
    """The config of another family as a part.

    Args:
        model_type: the family.
        tied_above: the whole says whether embedding and head are tied, so that what the part says of it changes nothing.
        own_type: as `model_type` in `Part`.
        unstated: as in `Part`.
        **defaults: where they are not those of the family.
    """
    family = REGISTRY[model_type]
    keys, running = (
        {key: defaults.get(key, default) for key, default in declared.items()}
        for declared in (family.keys, family.running)
    )
    if tied_above:
        running[TIE] = keys.pop(TIE)
    return Part(
        keys, running, family.aliases, model_type if own_type else "", unstated=unstated or {}, family=model_type
    )


def _flat(sibling: Sibling) -> Sibling:
    """A class that names the keys of its parts among its own."""
    keys, running, aliases = (_dotted(sibling.parts, field) for field in ("keys", "running", "aliases"))
    return sibling._replace(keys={**sibling.keys, **keys, **running}, aliases={**sibling.aliases, **aliases})


def _dotted(parts: Mapping[str, Part], field: str) -> dict[str, Any]:
    """The keys of all parts, or their aliases, under dotted names."""
    return {
        f"{name}.{key}": f"{name}.{value}" if field == "aliases" else value
        for name, part in parts.items()
        for key, value in getattr(part, field).items()
    }
