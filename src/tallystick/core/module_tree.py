"""Fold a model's tensors into a tree of modules, in which adjacent equal layers are one line.

Stacks stay rolled up: a model of a million equal layers has no more lines than one of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tallystick.core.entries import Entry


class Module(NamedTuple):
    """A module, or a run of equal modules: ``h.0-11`` is twelve."""

    name: str
    copies: int  # modules in the run
    size: int  # of one of them: unique parameters, or bytes
    numbered: bool  # whether it is an item of a list, such as a layer
    shares_with: str | None  # the tensor whose storage all its tensors share
    children: tuple[Module, ...]


class _Item(NamedTuple):
    """A tensor, or a stack, below the module at hand: the rest of its name."""

    parts: tuple[str, ...]
    entry: Entry
    size: int  # of one tensor
    axis: int = 0  # the first of the entry's axes that is still in `parts`

    @property
    def alike(self) -> tuple[Any, ...]:
        """What makes two layers' tensors equal."""
        left = tuple(axis.length for axis in self.entry.axes[self.axis :])
        return self.parts, self.entry.shape, self.size, left


def modules_of(entries: Iterable[Entry], size: Callable[[Entry], int] | None = None) -> tuple[Module, ...]:
    """Return the top modules of a model's parameters, with all modules below them.

    Args:
        entries: the parameters, stacks rolled up.
        size: the size of one tensor of an entry; by default its unique parameters.
    """
    sized = size or (lambda entry: int(entry.unique))
    items = [_Item(tuple(entry.name.split(".")), entry, sized(entry)) for entry in entries]
    alone = [_module(item.parts[0], 1, [item]) for item in items if len(item.parts) == 1]
    return (*_modules(items), *alone)


def module_rows(entries: Iterable[Entry], depth: int | None = None) -> list[dict[str, Any]]:
    """Return one row per module, parents first.

    Args:
        entries: the parameters, stacks rolled up.
        depth: levels to list; None lists all.
    """
    modules = modules_of(entries)
    total = sum(one.copies * one.size for one in modules)
    return list(_rows(modules, "", 1, 1, depth, total))


def runs_of_layers(entries: Iterable[Entry]) -> Iterator[tuple[str, int, int]]:
    """Yield each outermost run of equal layers: its name, its layers, the parameters of one.

    >>> from tallystick.core.entries import Axis
    >>> stack = Entry("h.{}.w", (2, 3), "mlp", "float32", "h.{}.w", 6, axes=(Axis(0, 12),))
    >>> list(runs_of_layers([stack]))
    [('h.0-11', 12, 6)]
    """
    yield from _layers(modules_of(entries), "")


def _layers(modules: Iterable[Module], prefix: str) -> Iterator[tuple[str, int, int]]:
    for one in modules:
        if one.numbered:
            yield prefix + one.name, one.copies, one.size
        else:
            yield from _layers(one.children, f"{prefix}{one.name}.")


def _rows(
    modules: Iterable[Module], prefix: str, level: int, times: int, depth: int | None, total: int
) -> Iterator[dict[str, Any]]:
    for one in modules:
        copies = times * one.copies
        yield {
            "module": prefix + one.name,
            "name": one.name,
            "depth": level,
            "run": one.copies,
            "copies": copies,
            "of_one": one.size,
            "parameters": copies * one.size,
            "share": round(copies * one.size / total, 6) if total else 0.0,
            "shares_with": one.shares_with,
        }
        if depth is None or level < depth:
            yield from _rows(one.children, f"{prefix}{one.name}.", level + 1, copies, depth, total)


def _modules(items: Sequence[_Item], prefix: str = "") -> tuple[Module, ...]:
    """Return the modules of one level; tensors of the level itself are none."""
    named: dict[str, list[_Item]] = {}
    numbered: list[_Item] = []
    for item in items:
        if len(item.parts) == 1:
            continue
        if item.parts[0] == "{}" or item.parts[0].isdecimal():
            numbered.append(item)
        else:
            named.setdefault(item.parts[0], []).append(_below(item))
    found = [_run(prefix, numbered)] if numbered else []
    for name, inside in named.items():
        if all(len(item.parts) > 1 and (item.parts[0] == "{}" or item.parts[0].isdecimal()) for item in inside):
            found.append(_run(f"{name}.", inside))  # a list of modules: its runs stand for it
        else:
            found.append([_module(name, 1, inside)])
    return tuple(module for run in found for module in run)


def _module(name: str, copies: int, items: Sequence[_Item], *, numbered: bool = False) -> Module:
    size = sum(item.size * _left(item) for item in items)
    others = {item.entry.storage for item in items if item.entry.storage != item.entry.name}
    tied = len(others) == 1 and not size
    return Module(name, copies, size, numbered, others.pop() if tied else None, _modules(items))


def _run(prefix: str, items: Sequence[_Item]) -> list[Module]:
    """Return runs of equal numbered modules, such as ``h.0-11``."""
    ranges: dict[tuple[int, int], list[_Item]] = {}
    for item in items:
        ranges.setdefault(_range(item), []).append(item)
    edges = sorted({edge for pair in ranges for edge in pair})
    runs: list[tuple[int, int, list[_Item]]] = []
    for start, end in pairwise(edges):
        inside = [_below(one) for (low, high), group in ranges.items() if low <= start and end <= high for one in group]
        if not inside:
            continue
        if runs and runs[-1][1] == start and _same(runs[-1][2], inside):
            runs[-1] = (runs[-1][0], end, runs[-1][2])
        else:
            runs.append((start, end, inside))
    return [
        _module(f"{prefix}{start}" + (f"-{end - 1}" if end - start > 1 else ""), end - start, inside, numbered=True)
        for start, end, inside in runs
    ]


def _same(one: Sequence[_Item], other: Sequence[_Item]) -> bool:
    return [item.alike for item in one] == [item.alike for item in other]


def _range(item: _Item) -> tuple[int, int]:
    """Return the numbers that an item covers: from the first to one after the last."""
    if item.parts[0] != "{}":
        return int(item.parts[0]), int(item.parts[0]) + 1
    start, length = item.entry.axes[item.axis]
    return int(start), int(start + length)


def _below(item: _Item) -> _Item:
    return item._replace(parts=item.parts[1:], axis=item.axis + (item.parts[0] == "{}"))


def _left(item: _Item) -> int:
    """Return how many tensors the item is in one module of this level."""
    found = 1
    for axis in item.entry.axes[item.axis :]:
        found *= int(axis.length)
    return found
