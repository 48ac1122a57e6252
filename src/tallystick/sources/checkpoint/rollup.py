"""Roll up tensors whose names differ only in their indices into one `Entry`.

A checkpoint of 90,000 tensors becomes a few dozen stacks, so that later steps cost as much as for
one layer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tallystick.core.budget import Budget, current
from tallystick.core.entries import Axis, Entry
from tallystick.core.tensor_names import template_of

# A template that occurs _OFTEN times gets a compiled pattern, unless it has _LONG characters:
# compiling takes time.
_OFTEN, _LONG = 16, 200

# Bytes of Python memory: per tensor, per index, per stack, per entry, per axis of an entry.
_ROW, _NUMBER, _STACK, BYTES_OF_ENTRY, _AXIS = 64, 64, 400, 320, 140
STEPS_OF_ENTRY = 20  # budget steps to process one entry, including its role


_Layout = tuple[str, tuple[int, ...], int | None]  # dtype, shape, and the stored bytes of packed values
_Rows = list[tuple[str, ...]]  # the numbers in the names of a stack, as written


class _Next(NamedTuple):
    """The tensor that came after another; names repeat their order in each layer."""

    template: str
    match: Callable[[str], re.Match[str] | None]
    layout: _Layout
    rows: _Rows


def roll_up(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], packed: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Entry]:
    """Yield entries for tensors, each with its own storage; the roles are set later.

    Names form a stack if their indices fill a whole grid; a grid with holes is split into several
    stacks.

    Args:
        tensors: (name, dtype, shape) of each tensor.
        packed: stored bytes of the tensors whose values are packed, by name.

    Raises:
        BadInput: if the source's budget is exhausted.
    """
    budget = current()
    before: _Rows = []
    grids: list[tuple[Axis, ...]] | None = None
    for template, (dtype, shape, held), rows in _stacks(tensors, packed, budget):
        size = math.prod(shape)
        if rows != before:  # the matrices of an MLP fill the same grid
            before, grids = rows, _grids(rows, budget) if _as_ranges_write(rows) else None
        if grids is None:
            for numbers in rows:
                name = template.format(*numbers)
                budget.step(STEPS_OF_ENTRY)
                budget.keep(BYTES_OF_ENTRY + len(name), "its tensors")
                yield Entry(name, shape, "other", dtype, name, size, packed=held)
            continue
        for axes in grids:
            budget.step(STEPS_OF_ENTRY)
            budget.keep(BYTES_OF_ENTRY + _AXIS * len(axes), "its tensors")
            yield Entry(template, shape, "other", dtype, template, size, axes=axes, packed=held)


def _stacks(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], packed: Mapping[str, int], budget: Budget
) -> list[tuple[str, _Layout, _Rows]]:
    """Return the templates of names with each layout, and the numbers that fill them."""
    stacks: dict[tuple[str, int, _Layout], _Rows] = {}
    patterns: dict[str, Callable[[str], re.Match[str] | None]] = {}
    following: dict[str, _Next] = {}  # by the template before
    before, known = "", 0
    rows_alike: dict[tuple[str, ...], tuple[str, ...]] = {}  # all tensors of an expert share one tuple
    for name, dtype, shape in tensors:
        layout = dtype, shape, packed.get(name)
        expected = following.get(before)
        if expected and (alike := expected.match(name)):
            template, _, usual, rows = expected
            numbers: tuple[str, ...] = alike.groups()
        else:
            (template, numbers), usual = template_of(name), None
        if layout != usual:
            # A name may contain a literal {}, which is not an index.
            rows = stacks.setdefault((template, len(numbers), layout), [])
            if template in patterns:
                following[before] = _Next(template, patterns[template], layout, rows)
        before = template
        rows.append(rows_alike.setdefault(numbers, numbers))
        if len(rows) == 1 or len(rows_alike) > known:
            known = len(rows_alike)
            budget.keep(
                (len(rows) == 1) * (_STACK + len(template)) + _ROW + _NUMBER * len(numbers), "its tensors' names"
            )
        if len(rows) == _OFTEN and numbers and len(template) < _LONG:
            patterns[template] = re.compile("([0-9]{1,9})".join(map(re.escape, template.split("{}")))).fullmatch
    return [(template, layout, rows) for (template, _, layout), rows in stacks.items()]


def _as_ranges_write(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the numbers are written as a range writes them, which 007 is not."""
    return all(number == str(int(number)) for column in zip(*rows, strict=True) for number in set(column))


def _grids(rows: Sequence[Sequence[str]], budget: Budget) -> list[tuple[Axis, ...]]:
    """Split rows of indices into grids: one grid if there is no hole, else several.

    Rows are distinct.
    """
    columns = [sorted(map(int, set(column))) for column in zip(*rows, strict=True)]
    budget.step(len(rows))
    whole = math.prod(map(len, columns)) == len(rows)
    if whole and all(column[-1] - column[0] + 1 == len(column) for column in columns):
        return [tuple(Axis(column[0], len(column)) for column in columns)]
    tails: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        tails.setdefault(row[0], []).append(row[1:])
    runs: list[tuple[Axis, list[tuple[Axis, ...]]]] = []  # consecutive first indices with equal tails
    for first in columns[0]:
        below = _grids(tails[str(first)], budget)
        if runs and sum(runs[-1][0]) == first and runs[-1][1] == below:
            runs[-1] = (Axis(runs[-1][0].start, runs[-1][0].length + 1), below)
        else:
            budget.step(2)
            runs.append((Axis(first, 1), below))
    return [(axis, *tail) for axis, below in runs for tail in below]
