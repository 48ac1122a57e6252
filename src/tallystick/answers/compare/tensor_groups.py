"""A ledger as two of them can be laid beside each other: in groups, each one tensor of each of some layers.

Entries come rolled up from configs and checkpoints, and one by one from live modules. Here they are alike: the number
of the layer and those of experts are left open, all other numbers are kept.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from tallystick.answers.check.projections import projected
from tallystick.answers.compare.half_blocks import in_blocks
from tallystick.answers.compare.tensor_group import NOWHERE, TensorGroup
from tallystick.answers.parts import kind_of
from tallystick.core.ledger import EMBEDDING_ROLES, Axis, Entry

MOST_SPELLED = 64  # tensors of one layer that are kept apart by their numbers; more of them are counted as copies

_NUMBER = re.compile(r"[0-9]{1,9}")


def tensor_groups(entries: Iterable[Entry]) -> list[TensorGroup]:
    """The groups of a ledger, in its order."""
    steps: dict[TensorGroup, dict[int, int]] = {}  # a group of no layers yet -> how `each` changes at a layer
    names: dict[str, str] = {}
    for entry in _held_by_embeddings(entries):
        for name, layers, each in _places(entry):
            if entry.storage == entry.name:
                names.setdefault(entry.name, name)
            holder = "" if entry.storage == entry.name else names.get(entry.storage, entry.storage)
            shape = tuple(int(size) for size in entry.shape)
            kind, layered = kind_of(entry), layers is not None
            role = "experts" if entry.role == "mlp" and len(shape) == (2 if kind == "bias" else 3) else entry.role
            group = TensorGroup(
                name, shape, role, kind, entry.dtype, entry.buffer, entry.unique, holder, layered, NOWHERE, 0
            )
            start, length = layers or Axis(0, 1)
            step = steps.setdefault(group, defaultdict(int))
            step[start] += each
            step[start + length] -= each
    return projected(
        in_blocks(
            group._replace(layers=layers, each=each) for group, step in steps.items() for layers, each in _runs(step)
        )
    )


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
    numbering = _numbering(above, entry.role)
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
        elif place == numbering or axis.length * math.prod(map(len, spelled)) > MOST_SPELLED:
            each *= axis.length
            name.append("{}")
        else:
            spelled.append(range(axis.start, axis.start + axis.length))
            name.append(None)
    for numbers in product(*spelled):
        number = iter(map(str, numbers))
        yield ".".join([*(next(number) if word is None else word for word in name), last]), layers, each


def _numbering(above: Sequence[str], role: str) -> int | None:
    """Where in its name an expert's number is: after a word for experts, or else the first after the layer's."""
    numbers = [place for place, word in enumerate(above) if word == "{}" or _NUMBER.fullmatch(word)]
    named = [place for place in numbers if place and "expert" in above[place - 1]]
    unnamed = numbers[1:2] if role == "experts" else []
    return next(iter(named or unnamed), None)


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
