"""Tensors gathered by their names without numbers, and where they stand: what structure says of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.core.ledger import Entry
from tallystick.core.tensor_names import template_of

_HIGHEST = 4  # modules above a tensor that are looked at

Key = tuple[str, tuple[int, ...]]


@dataclass(slots=True)
class Stack:
    """All tensors of one shape whose names differ only in their numbers, as found so far."""

    template: str  # with {} for each number
    shape: tuple[int, ...]
    role: str  # "other" where nothing tells it yet
    spans: list[tuple[int, int]] = field(default_factory=list)  # the first and last number of each place
    experts: int = 0  # how many it is of, where it is of experts and its shape or place tells

    @property
    def module(self) -> str:
        """The module that holds it."""
        return parent(self.template)

    @property
    def leaf(self) -> str:
        """Its name in that module."""
        return self.template.rpartition(".")[2]

    def length(self, place: int) -> int:
        """How many numbers there are in one place of the name."""
        first, last = self.spans[place]
        return last - first + 1

    @property
    def single(self) -> bool:
        """Whether it is one tensor."""
        return all(first == last for first, last in self.spans)

    def widen(self, spans: Sequence[tuple[int, int]]) -> None:
        """Take more tensors in."""
        pairs = zip(self.spans, spans, strict=True)
        self.spans = [(min(a, b), max(c, d)) for (a, c), (b, d) in pairs] if self.spans else list(spans)


def stacked(entries: Iterable[Entry], roles: Mapping[str, str]) -> tuple[list[Key | None], dict[Key, Stack]]:
    """The stacks that entries form, and to which each entry belongs; buffers belong to none.

    Args:
        entries: single tensors or stacks of them.
        roles: those that are known already, by the entries' names.
    """
    keys: list[Key | None] = []
    stacks: dict[Key, Stack] = {}
    for entry in entries:
        if entry.buffer:
            keys.append(None)
            continue
        if entry.axes:
            template, spans = entry.name, [(axis.start, axis.start + axis.length - 1) for axis in entry.axes]
        else:
            template, numbers = template_of(entry.name)
            spans = [(int(number), int(number)) for number in numbers]
        if template in _ENDS and spans[0][0] == spans[0][1]:
            template, spans = template.format(spans[0][0]), []
        key = (template, tuple(int(size) for size in entry.shape))
        keys.append(key)
        stack = stacks.get(key)
        if stack is None:
            stack = stacks[key] = Stack(*key, entry.role)
        elif len(stack.spans) != len(spans):  # a name may hold a {} of its own
            continue
        stack.widen(spans)
        if known := roles.get(entry.name):
            stack.role = known
    return keys, stacks


def parent(path: str) -> str:
    """The module that holds what a path names; "" is the model."""
    return path.rpartition(".")[0]


def above(path: str, levels: int = _HIGHEST) -> Iterator[str]:
    """A module and those around it, the nearest first."""
    for _ in range(levels):
        yield path
        if not path:
            return
        path = parent(path)


def block_of(template: str) -> str:
    """The numbered block that a tensor is in, "" where there is none.

    >>> block_of("h.{}.attn.w"), block_of("to_logits.weight"), block_of("head.{}.weight")
    ('h.{}', '', '')
    """
    before, number, after = template.partition("{}.")
    return before + "{}" if number and ("." in after or after not in _PLAIN) else ""


_PLAIN = ("weight", "bias")  # a Sequential of layers is no list of blocks
_ENDS = tuple("{}." + leaf for leaf in _PLAIN)  # in a model that is a Sequential, both of its ends have such a name


def width_of(stacks: Iterable[Stack]) -> int:
    """The width of the model: the size that most matrices of its blocks have; 0 where there are none."""
    sizes: Counter[int] = Counter()
    for stack in stacks:
        if len(stack.shape) >= 2 and block_of(stack.template):
            sizes.update(set(stack.shape[-2:]))
    return sizes.most_common(1)[0][0] if sizes else 0
