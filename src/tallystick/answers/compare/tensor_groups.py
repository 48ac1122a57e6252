"""Group a ledger's tensors by name pattern and shape across layers, for alignment.

Entries are rolled up in configs and checkpoints, and single in live modules. The groups are the
same for both: the numbers of layers and experts become {}, all other numbers stay.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from tallystick.answers.compare.half_blocks import in_blocks
from tallystick.answers.compare.projections import projected
from tallystick.answers.compare.tensor_group import NOWHERE, TensorGroup
from tallystick.answers.parts import kind_of
from tallystick.core.entries import EMBEDDING_ROLES, Axis, Entry

MOST_SPELLED = 64  # tensors of one layer that keep their numbers in names; more of them are counted as copies

_NUMBER = re.compile(r"[0-9]{1,9}")


def tensor_groups(entries: Iterable[Entry]) -> list[TensorGroup]:
    """Return the groups of a ledger's entries, in their order."""
    steps: dict[TensorGroup, dict[int, int]] = {}  # a group without layers -> change of `each` at a layer
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
    """Yield (name with {} for layer and expert numbers, its layers, tensors per layer)."""
    *above, last = entry.name.split(".")
    numbering = _numbering(above, entry.role)
    axes = iter([Axis(int(axis.start), int(axis.length)) for axis in entry.axes])  # plain integers, without expressions
    layers: Axis | None = None
    each = 1
    spelled: list[range] = []
    name: list[str | None] = []  # None for a number that is filled in
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
    """Return the position of the expert number: after an "expert" word, or after the layer."""
    numbers = [place for place, word in enumerate(above) if word == "{}" or _NUMBER.fullmatch(word)]
    named = [place for place in numbers if place and "expert" in above[place - 1]]
    unnamed = numbers[1:2] if role == "experts" else []
    return next(iter(named or unnamed), None)


def _held_by_embeddings(entries: Iterable[Entry]) -> list[Entry]:
    """Let the token embedding hold each tie: the order of tied names is not a difference."""
    entries = list(entries)
    places = {entry.name: place for place, entry in enumerate(entries)}
    holders: dict[str, str] = {}  # former holder -> new holder
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
