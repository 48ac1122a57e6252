"""A ledger as two of them can be laid beside each other: in strands, each one tensor of each of some layers.

Entries come rolled up from configs and checkpoints, and one by one from live modules. Here they are alike: the number
of the layer and those of experts are left open, all other numbers are kept.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

from tallystick.answers.parts import kind_of
from tallystick.ledger import EMBEDDING_ROLES, Axis, Entry

MOST_SPELLED = 64  # tensors of one layer that are kept apart by their numbers; more of them are counted as copies

NOWHERE = Axis(0, 0)
_NUMBER = re.compile(r"[0-9]{1,9}")
_KINDS = re.compile(r"(.*?)_?(weight|bias|scale|shift|gamma|beta)", re.IGNORECASE)


class Strand(NamedTuple):
    """Tensors of one shape that run through some layers: one of each, or `each` where they are experts."""

    name: str  # with {} for the numbers of layers and experts
    shape: tuple[int, ...]
    role: str
    kind: str  # as `kind_of` tells it
    dtype: str
    buffer: bool
    unique: int  # elements of one tensor that nothing else holds
    holder: str  # the name that it is tied to, "" where it is its own
    layered: bool
    layers: Axis  # Axis(0, 1) for what stands in no layer
    each: int

    @property
    def size(self) -> int:
        """Elements of one tensor."""
        return int(math.prod(self.shape))

    @property
    def copies(self) -> int:
        """How many tensors."""
        return self.layers.length * self.each

    @property
    def experts(self) -> int:
        """How many experts it holds, whether in one tensor or one by one; 1 for what is no expert's."""
        return self.shape[0] if len(self.inner) < len(self.shape) else self.each

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of one, without the dimension of the experts."""
        fused = self.role == "experts" and self.each == 1 and len(self.shape) > (1 if self.kind == "bias" else 2)
        return self.shape[1:] if fused else self.shape

    @property
    def parameters(self) -> int:
        """Unique parameters of all."""
        return 0 if self.buffer else self.unique * self.copies

    @property
    def shared(self) -> bool:
        """Whether another tensor holds it, or some of it."""
        return self.unique < self.size

    @property
    def title(self) -> str:
        """The name as people read it."""
        return self.name.replace("{}", "*")

    @property
    def word(self) -> str:
        """What the module calls it, such as ``q_proj``."""
        *above, last = self.name.split(".")
        kind = _KINDS.fullmatch(last)
        return last if kind is None else kind[1] or (above[-1] if above else "")


def strands_of(entries: Iterable[Entry]) -> list[Strand]:
    """The strands of a ledger, in its order."""
    steps: dict[Strand, dict[int, int]] = {}  # a strand of no layers yet -> how `each` changes at a layer
    names: dict[str, str] = {}
    for entry in _held_by_embeddings(entries):
        for name, layers, each in _places(entry):
            if entry.storage == entry.name:
                names.setdefault(entry.name, name)
            holder = "" if entry.storage == entry.name else names.get(entry.storage, entry.storage)
            shape = tuple(int(size) for size in entry.shape)
            kind, layered = kind_of(entry), layers is not None
            strand = Strand(
                name, shape, entry.role, kind, entry.dtype, entry.buffer, entry.unique, holder, layered, NOWHERE, 0
            )
            start, length = layers or Axis(0, 1)
            step = steps.setdefault(strand, defaultdict(int))
            step[start] += each
            step[start + length] -= each
    return [strand._replace(layers=layers, each=each) for strand, step in steps.items() for layers, each in _runs(step)]


def _runs(steps: dict[int, int]) -> Iterator[tuple[Axis, int]]:
    edges = sorted(layer for layer, step in steps.items() if step)
    each = 0
    for start, end in pairwise(edges):
        each += steps[start]
        if each:
            yield Axis(start, end - start), each


def _places(entry: Entry) -> Iterator[tuple[str, Axis | None, int]]:
    """An entry's name with its layer's and its experts' numbers left open, its layers, and how many in each."""
    *above, last = entry.name.split(".")
    axes = iter([Axis(int(axis.start), int(axis.length)) for axis in entry.axes])  # plain integers, without expressions
    layers: Axis | None = None
    each = 1
    spelled: list[range] = []
    name: list[str | None] = []  # None where one of the numbers that are spelled out goes
    for place, word in enumerate(above):
        axis = next(axes, None) if word == "{}" else Axis(int(word), 1) if _NUMBER.fullmatch(word) else None
        if axis is None:
            name.append(word)
        elif layers is None and entry.role not in EMBEDDING_ROLES:
            layers = axis
            name.append("{}")
        elif (place and "expert" in above[place - 1]) or axis.length * math.prod(map(len, spelled)) > MOST_SPELLED:
            each *= axis.length
            name.append("{}")
        else:
            spelled.append(range(axis.start, axis.start + axis.length))
            name.append(None)
    for numbers in product(*spelled):
        number = iter(map(str, numbers))
        yield ".".join([*(next(number) if word is None else word for word in name), last]), layers, each


def _held_by_embeddings(entries: Iterable[Entry]) -> list[Entry]:
    """Entries with each tie held by its token embedding: which of the names comes first is no difference of models."""
    entries = list(entries)
    places = {entry.name: place for place, entry in enumerate(entries)}
    holders: dict[str, str] = {}  # whose tie goes to whom
    for place, entry in enumerate(entries):
        first = places.get(entry.storage, place)
        before = entries[first]
        if entry.role != "token_embedding" or entry.unique or before.role == "token_embedding":
            continue
        if (before.unique, before.buffer, before.axes) == (entry.size, entry.buffer, entry.axes):
            holders[before.name] = entry.name
            entries[first] = before._replace(unique=0)
            entries[place] = entry._replace(unique=entry.size)
    return [entry._replace(storage=holders.get(entry.storage, entry.storage)) for entry in entries]
