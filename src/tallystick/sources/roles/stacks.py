"""Group a model's tensors into stacks by name without indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.core.entries import Entry
from tallystick.core.tensor_names import template_of

_HIGHEST = 4  # number of enclosing modules to examine

Key = tuple[str, tuple[int, ...]]


@dataclass(slots=True)
class Stack:
    """All tensors of one shape whose names differ only in their indices, as found so far."""

    template: str  # with {} for each index
    shape: tuple[int, ...]
    role: str  # "other" if not known yet
    spans: list[tuple[int, int]] = field(default_factory=list)  # (first, last) value of each index
    experts: int = 0  # number of experts in the layer, if this stack belongs to experts

    @property
    def module(self) -> str:
        """The path of the module that holds the tensors."""
        return parent(self.template)

    @property
    def leaf(self) -> str:
        """The name in that module."""
        return self.template.rpartition(".")[2]

    def length(self, place: int) -> int:
        """Return the number of values of one index in the name."""
        first, last = self.spans[place]
        return last - first + 1

    @property
    def single(self) -> bool:
        """Whether the stack is one tensor."""
        return all(first == last for first, last in self.spans)

    def widen(self, spans: Sequence[tuple[int, int]]) -> None:
        """Add tensors with these index spans."""
        pairs = zip(self.spans, spans, strict=True)
        self.spans = [(min(a, b), max(c, d)) for (a, c), (b, d) in pairs] if self.spans else list(spans)


def stacked(entries: Iterable[Entry], roles: Mapping[str, str]) -> tuple[list[Key | None], dict[Key, Stack]]:
    """Group entries into stacks; return each entry's key and the stacks. A buffer's key is None.

    Args:
        entries: single tensors or stacks of tensors.
        roles: known roles, by the entries' names.
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
        elif len(stack.spans) != len(spans):  # a name may contain a literal {}
            continue
        stack.widen(spans)
        if known := roles.get(entry.name):
            stack.role = known
    return keys, stacks


def parent(path: str) -> str:
    """Return the path of the enclosing module; "" is the model."""
    return path.rpartition(".")[0]


def above(path: str, levels: int = _HIGHEST) -> Iterator[str]:
    """Yield a module and its enclosing modules, the nearest first.

    Args:
        path: the module's path.
        levels: the maximum number of modules to yield.
    """
    for _ in range(levels):
        yield path
        if not path:
            return
        path = parent(path)


def block_of(template: str) -> str:
    """Return the numbered block that holds a tensor, or "".

    >>> block_of("h.{}.attn.w"), block_of("to_logits.weight"), block_of("head.{}.weight")
    ('h.{}', '', '')
    """
    before, number, after = template.partition("{}.")
    return before + "{}" if number and ("." in after or after not in _PLAIN) else ""


_PLAIN = ("weight", "bias")  # a Sequential of layers is not a list of blocks
_ENDS = tuple("{}." + leaf for leaf in _PLAIN)  # names of the first and last layer if the model is a Sequential


def width_of(stacks: Iterable[Stack]) -> int:
    """Return the model's width: the most frequent size in the blocks' matrices, or 0."""
    sizes: Counter[int] = Counter()
    for stack in stacks:
        if len(stack.shape) >= 2 and block_of(stack.template):
            sizes.update(set(stack.shape[-2:]))
    return sizes.most_common(1)[0][0] if sizes else 0
