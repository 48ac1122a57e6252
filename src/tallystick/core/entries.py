"""Entries: named tensors and stacks of them, their axes, ties and roles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tallystick.core.dtypes import size_in_bytes
from tallystick.core.packed_names import model_name

if TYPE_CHECKING:
    from fractions import Fraction  # 2 ms that most models need not wait for

ROLES = (
    "token_embedding",
    "position_embedding",
    "attention",
    "mlp",
    "experts",
    "router",
    "ssm",
    "conv",
    "norm",
    "head",
    "other",
)
# Embedding / non-embedding split. The LM head counts as embedding whether tied or not,
# so untying it moves nothing from one side to the other.
EMBEDDING_ROLES = frozenset({"token_embedding", "position_embedding", "head"})


class Entry(NamedTuple):
    """One named tensor, or a stack of equal tensors whose names differ in layer or expert numbers.

    In a stack, `name` and `storage` hold one ``{}`` for each item of `axes`:
    ``transformer.h.{}.ln_1.weight`` with ``(Axis(0, 12),)`` is twelve tensors. A stack is unrolled
    only when single tensors are requested, so a 700B mixture of experts costs no more than GPT-2.

    >>> axes = (Axis(start=0, length=12),)
    >>> entry = Entry("h.{}.weight", (4, 8), "mlp", "float32", "h.{}.weight", 32, axes=axes)
    >>> entry.size, entry.copies, entry.bytes  # of one tensor; tensors; bytes of one
    (32, 12, 128)
    >>> entry.numbered(11).name
    'h.11.weight'
    """

    name: str  # exactly as in the checkpoint
    shape: tuple[int, ...]
    role: str
    dtype: str
    storage: str  # name of the first entry with this storage; entries that share storage carry the same name
    unique: int  # elements that no earlier entry holds: all of them, 0 for a tie, some for an overlap
    identity: str = ""  # name of the first entry with this Parameter object; "" means its own name
    trainable: bool = True
    buffer: bool = False
    active: Fraction | None = None  # share of the tensor that one token uses; None means all
    axes: tuple[Axis, ...] = ()
    packed: int | None = None  # bytes of one tensor in the files: a packed weight, or its separate scales

    @property
    def size(self) -> int:
        """Elements of one tensor."""
        return math.prod(
            map(int, self.shape)
        )  # a product of `Dim`s would write its expression, which nobody reads here

    @property
    def copies(self) -> int:
        """Number of tensors that this entry represents."""
        return math.prod(int(axis.length) for axis in self.axes) if self.axes else 1

    @property
    def bytes(self) -> int:
        """Bytes of the unique elements of one tensor: in its dtype, or as packed in the files."""
        if self.packed is None:
            return size_in_bytes(self.unique, self.dtype)
        return self.packed if self.unique else 0

    @property
    def called(self) -> str:
        """The model's name of the tensor; a packed weight may be stored under another name."""
        return model_name(self.name, packed=self.packed is not None and not self.buffer)

    def numbered(self, number: int) -> Entry:
        """Return item `number` of a stack: fill in the first ``{}`` of its name.

        Args:
            number: of the layer or expert.
        """
        filled = str(number)
        name = self.name.replace("{}", filled, 1)
        storage = name if self.storage == self.name else self.storage.replace("{}", filled, 1)
        return tuple.__new__(  # what _replace gives, in a third of the time: a large model has 90,000 of these
            Entry,
            (name, self.shape, self.role, self.dtype, storage, self.unique, self.identity, self.trainable, self.buffer,
             self.active, self.axes[1:], self.packed),
        )  # fmt: skip

    def unrolled(self) -> Iterator[Entry]:
        """Yield each single tensor, in the order of the numbers in its name."""
        if not self.axes:
            yield self
            return
        for number in range(self.axes[0].start, self.axes[0].start + self.axes[0].length):
            yield from self.numbered(number).unrolled()


class Axis(NamedTuple):
    """The range of numbers, from `start` on, for one ``{}`` of a name."""

    start: int
    length: int


class Tie(NamedTuple):
    """Names that share storage, and their relation (see the word list).

    >>> Tie(("wte.weight", "lm_head.weight"), "tied", 50257 * 768).parameters
    38597376
    """

    names: tuple[str, ...]
    relation: str  # tied | aliased | copied | untied | unknown
    parameters: int  # elements saved by sharing: the by-name total less the unique elements


def in_printing_order(rolled: Iterable[Entry]) -> Iterator[Entry]:
    """Yield single tensors layer by layer: adjacent stacks with one root are unrolled together."""

    def root(entry: Entry) -> str:
        return "." + entry.name.partition("{}")[0] if entry.axes else ""

    for prefix, neighbours in groupby(rolled, key=root):
        if not prefix:
            yield from neighbours
            continue
        items: dict[int, list[Entry]] = {}
        for entry in neighbours:
            start, length = entry.axes[0]
            for number in range(start, start + length):
                items.setdefault(number, []).append(entry.numbered(number))
        for number in sorted(items):
            inner = items[number]
            yield from in_printing_order(inner) if any(entry.axes for entry in inner) else inner


def total_of(entries: Iterable[Entry]) -> int:
    """Return the unique parameters of some entries, without buffers."""
    return sum(entry.unique * entry.copies for entry in entries if not entry.buffer)


def ties_of(parameters: Iterable[Entry], relations: Mapping[str, str], *, live: bool) -> tuple[Tie, ...]:
    """Return groups of names with one storage, in order of first appearance.

    Args:
        parameters: entries of parameters, stacks rolled up.
        relations: the relation of each storage that is not simply tied.
        live: whether names of one Parameter are separated from aliases, by `Entry.identity`.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in parameters:
        groups.setdefault(entry.storage, []).append(entry)
    ties = []
    for storage, group in groups.items():
        # Runs of one stack (dense layers, then sparse ones) have one rolled name but share nothing.
        if len(group) == 1 or all(entry.name == storage for entry in group):
            continue
        singles: dict[str, list[Entry]] = {}
        for entry in group:
            for single in entry.unrolled():
                singles.setdefault(single.storage, []).append(single)
        for shared in singles.values():
            if len(shared) == 1:
                continue
            if live:
                ties += _by_identity(shared)
            else:
                ties.append(_tie(shared, relations.get(storage, "tied")))
    return tuple(ties)


def _tie(shared: Sequence[Entry], relation: str, saved: int | None = None) -> Tie:
    saved = sum(entry.size - entry.unique for entry in shared) if saved is None else saved
    return Tie(tuple(entry.name for entry in shared), relation, saved)


def _by_identity(shared: Sequence[Entry]) -> list[Tie]:
    """Return the ties in one storage of a live module: names of each Parameter, then aliases."""
    parameters: dict[str, list[Entry]] = {}
    for entry in shared:
        parameters.setdefault(entry.identity or entry.name, []).append(entry)
    if len(parameters) == 1:
        return [_tie(shared, "tied")]
    tied = [_tie(names, "tied", sum(e.size for e in names[1:])) for names in parameters.values() if len(names) > 1]
    return [*tied, _tie([names[0] for names in parameters.values()], "aliased")]
