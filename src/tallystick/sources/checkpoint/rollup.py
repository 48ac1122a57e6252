"""Roll up tensors whose names differ only in their indices into one `Entry`.

A checkpoint of 90,000 tensors becomes a few dozen stacks, so that later steps cost as much as for
one layer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tallystick.core.budget import Budget, current
from tallystick.core.entries import Axis, Entry
from tallystick.core.tensor_names import template_of

# A template that occurs _OFTEN times gets a compiled pattern, unless it has _LONG characters:
# compiling takes time.
_OFTEN, _LONG = 16, 200

# Bytes of Python memory: per tensor, per index, per stack, per entry, per axis of an entry.
_ROW, _NUMBER, _STACK, BYTES_OF_ENTRY, _AXIS = 64, 64, 400, 320, 140
STEPS_OF_ENTRY = 20  # budget steps to process one entry, including its role


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
    stacks: dict[tuple[str, int, str, tuple[int, ...], int | None], list[tuple[str, ...]]] = {}
    patterns: dict[str, Callable[[str], re.Match[str] | None]] = {}
    follower: dict[str, str] = {}  # template -> next template: the order of names repeats in each layer
    before, known = "", 0
    rows_alike: dict[tuple[str, ...], tuple[str, ...]] = {}  # all tensors of an expert share one tuple
    for name, dtype, shape in tensors:
        template = follower.get(before, "")
        if template and (alike := patterns[template](name)):
            numbers: tuple[str, ...] = alike.groups()
        else:
            template, numbers = template_of(name)
            if template in patterns:
                follower[before] = template
        before = template
        # A name may contain a literal {}, which is not an index.
        rows = stacks.setdefault((template, len(numbers), dtype, shape, packed.get(name)), [])
        rows.append(rows_alike.setdefault(numbers, numbers))
        if len(rows) == 1 or len(rows_alike) > known:
            known = len(rows_alike)
            budget.keep(
                (len(rows) == 1) * (_STACK + len(template)) + _ROW + _NUMBER * len(numbers), "its tensors' names"
            )
        if len(rows) == _OFTEN and numbers and len(template) < _LONG:
            patterns[template] = re.compile("([0-9]{1,9})".join(map(re.escape, template.split("{}")))).fullmatch
    for (template, _, dtype, shape, held), rows in stacks.items():
        size = math.prod(shape)
        if any(number != str(int(number)) for column in zip(*rows, strict=True) for number in set(column)):
            for numbers in rows:  # a range would not reproduce 007
                name = template.format(*numbers)
                budget.step(STEPS_OF_ENTRY)
                budget.keep(BYTES_OF_ENTRY + len(name), "its tensors")
                yield Entry(name, shape, "other", dtype, name, size, packed=held)
        else:
            for axes in _grids(rows, budget):
                budget.step(STEPS_OF_ENTRY)
                budget.keep(BYTES_OF_ENTRY + _AXIS * len(axes), "its tensors")
                yield Entry(template, shape, "other", dtype, template, size, axes=axes, packed=held)


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
