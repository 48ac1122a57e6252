"""Rolling up tensors whose names differ only in their numbers into one `Entry`.

A checkpoint of 90,000 tensors is a few dozen stacks; all that follows then costs as much as for one layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from tallystick.ledger import Axis, Entry, template_of


def roll_up(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> Iterator[Entry]:
    """Entries for tensors given as (name, dtype, shape), each its own storage; roles are not told yet.

    Names form stacks where their numbers fill whole grids: as few as there are holes to leave out.
    """
    stacks: dict[tuple[str, int, str, tuple[int, ...]], list[tuple[str, ...]]] = {}
    for name, dtype, shape in tensors:
        template, numbers = template_of(name)
        # A name may hold a {} of its own, which stands for no number.
        stacks.setdefault((template, len(numbers), dtype, shape), []).append(numbers)
    for (template, _, dtype, shape), rows in stacks.items():
        size = math.prod(shape)
        whole = _grid(rows)
        if whole is None and any(number != str(int(number)) for row in rows for number in row):
            for numbers in rows:  # 007 is no number that a range would give back as it was
                name = template.format(*numbers)
                yield Entry(name, shape, "other", dtype, name, size)
            continue
        for axes in [whole] if whole is not None else _grids([tuple(map(int, row)) for row in rows]):
            yield Entry(template, shape, "other", dtype, template, size, axes=axes)


def _grid(rows: Sequence[Sequence[int | str]]) -> tuple[Axis, ...] | None:
    """The ranges that the rows fill, or None where they leave a hole. Rows are distinct, as names are."""
    columns = [set(map(str, set(column))) for column in zip(*rows, strict=True)]
    if math.prod(map(len, columns)) != len(rows):
        return None
    axes = tuple(Axis(min(map(int, column)), len(column)) for column in columns)
    full = all(
        column == set(map(str, range(axis.start, axis.start + axis.length)))
        for axis, column in zip(axes, columns, strict=True)
    )
    return axes if full else None


def _grids(rows: Sequence[tuple[int, ...]]) -> list[tuple[Axis, ...]]:
    """The rows as grids: those of neighbouring first numbers joined where all their other numbers agree."""
    whole = _grid(rows)
    if whole is not None:
        return [whole]
    tails: dict[int, list[tuple[int, ...]]] = {}
    for first, *tail in rows:
        tails.setdefault(first, []).append(tuple(tail))
    runs: list[tuple[Axis, list[tuple[Axis, ...]]]] = []
    for first in sorted(tails):
        below = _grids(tails[first])
        if runs and sum(runs[-1][0]) == first and runs[-1][1] == below:
            runs[-1] = (Axis(runs[-1][0].start, runs[-1][0].length + 1), below)
        else:
            runs.append((Axis(first, 1), below))
    return [(axis, *tail) for axis, below in runs for tail in below]
