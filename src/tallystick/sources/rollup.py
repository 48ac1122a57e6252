"""Rolling up tensors whose names differ only in their numbers into one `Entry`.

A checkpoint of 90,000 tensors is a few dozen stacks; all that follows then costs as much as for one layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from tallystick.ledger import Axis, Entry, template_of


def roll_up(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> Iterator[Entry]:
    """Entries for tensors given as (name, dtype, shape), each its own storage; roles are not told yet.

    Names form a stack where their numbers fill a whole grid; those that do not stay single.
    """
    stacks: dict[tuple[str, int, str, tuple[int, ...]], list[tuple[str, ...]]] = {}
    for name, dtype, shape in tensors:
        template, numbers = template_of(name)
        # A name may hold a {} of its own, which stands for no number.
        stacks.setdefault((template, len(numbers), dtype, shape), []).append(numbers)
    for (template, _, dtype, shape), rows in stacks.items():
        size = math.prod(shape)
        axes = _grid(rows)
        if axes is not None:
            yield Entry(template, shape, "other", dtype, template, size, axes=axes)
            continue
        for numbers in sorted(rows, key=lambda row: [int(number) for number in row]):
            name = template.format(*numbers)
            yield Entry(name, shape, "other", dtype, name, size)


def _grid(rows: Sequence[Sequence[str]]) -> tuple[Axis, ...] | None:
    """The ranges that the rows fill, or None where they leave a hole. Rows are distinct, as names are."""
    columns = [set(column) for column in zip(*rows, strict=True)]
    if math.prod(map(len, columns)) != len(rows):
        return None
    axes = tuple(Axis(min(map(int, column)), len(column)) for column in columns)
    # Comparing as text also leaves out 007, which no range would give back as it was.
    full = all(
        column == set(map(str, range(axis.start, axis.start + axis.length)))
        for axis, column in zip(axes, columns, strict=True)
    )
    return axes if full else None
