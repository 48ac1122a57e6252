"""Rolling up tensors whose names differ only in their numbers into one `Entry`.

A checkpoint of 90,000 tensors is a few dozen stacks; all that follows then costs as much as for one layer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tallystick.core.budget import Budget, current
from tallystick.core.ledger import Axis, Entry
from tallystick.core.tensor_names import template_of

# A template that comes so often gets a pattern of its own, unless it is longer than any model's: to make one takes time.
_OFTEN, _LONG = 16, 200

# Bytes that Python takes: for one tensor's numbers and each of them, for a stack, for an entry and each of its axes.
_ROW, _NUMBER, _STACK, BYTES_OF_ENTRY, _AXIS = 64, 64, 400, 320, 140
STEPS_OF_ENTRY = 20  # until it is counted, its role among them


def roll_up(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], packed: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Entry]:
    """Entries for tensors given as (name, dtype, shape), each its own storage; roles are not told yet.

    Names form stacks where their numbers fill whole grids: as few as there are holes to leave out. `packed` are the bytes
    of those whose values are packed.

    Raises:
        BadInput: where the budget of the source is spent.
    """
    budget = current()
    stacks: dict[tuple[str, int, str, tuple[int, ...], int | None], list[tuple[str, ...]]] = {}
    patterns: dict[str, Callable[[str], re.Match[str] | None]] = {}
    follower: dict[str, str] = {}  # the template that came after one: in each layer names follow one another alike
    before, known = "", 0
    rows_alike: dict[tuple[str, ...], tuple[str, ...]] = {}  # all tensors of one expert have its numbers: kept once
    for name, dtype, shape in tensors:
        template = follower.get(before, "")
        if template and (alike := patterns[template](name)):
            numbers: tuple[str, ...] = alike.groups()
        else:
            template, numbers = template_of(name)
            if template in patterns:
                follower[before] = template
        before = template
        # A name may hold a {} of its own, which stands for no number.
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
            for numbers in rows:  # 007 is no number that a range would give back as it was
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
    """The ranges that rows of numbers fill: one grid if they leave no hole, else several. No row comes twice."""
    columns = [sorted(map(int, set(column))) for column in zip(*rows, strict=True)]
    budget.step(len(rows))
    whole = math.prod(map(len, columns)) == len(rows)
    if whole and all(column[-1] - column[0] + 1 == len(column) for column in columns):
        return [tuple(Axis(column[0], len(column)) for column in columns)]
    tails: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        tails.setdefault(row[0], []).append(row[1:])
    runs: list[tuple[Axis, list[tuple[Axis, ...]]]] = []  # neighbouring first numbers whose tails agree
    for first in columns[0]:
        below = _grids(tails[str(first)], budget)
        if runs and sum(runs[-1][0]) == first and runs[-1][1] == below:
            runs[-1] = (Axis(runs[-1][0].start, runs[-1][0].length + 1), below)
        else:
            budget.step(2)
            runs.append((Axis(first, 1), below))
    return [(axis, *tail) for axis, below in runs for tail in below]
