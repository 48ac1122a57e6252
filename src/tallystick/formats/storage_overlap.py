"""Find which tensors overlap in memory, and the elements that each adds to earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

from tallystick.core.budget import current
from tallystick.errors import BadInput

# Steps and bytes for each run of adjacent elements in overlapping views; a slice of columns
# has one run for each row.
_STEPS_OF_RUN, _BYTES_OF_RUN = 20, 300
_BYTES_OF_VIEW = 300  # for each view


class View(NamedTuple):
    """The elements of one memory that a tensor covers; equal views cover equal elements."""

    memory: str
    start: int
    layout: tuple[tuple[int, int], ...]  # (stride, size) pairs from `joined`

    @property
    def end(self) -> int:
        """Position after the last element."""
        return self.start + sum((size - 1) * stride for stride, size in self.layout) + 1

    @property
    def size(self) -> int:
        """Distinct elements; more if the view overlaps itself."""
        return math.prod(size for _, size in self.layout)


class Shared(NamedTuple):
    """Overlap of a tensor with earlier ones."""

    owner: int  # index of the first tensor linked to it by common elements; may be its own
    new: int  # elements that no earlier tensor covers


def joined(shape: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return (stride, size) pairs by rising stride, with contiguous dimensions merged.

    A dense tensor gives ``((1, n),)``, also if transposed, as do overlapping windows.

    Args:
        shape: sizes without a zero.
        strides: in elements.

    >>> joined((2, 3), (3, 1)), joined((2, 3), (5, 1)), joined((6, 4), (1, 1))
    (((1, 6),), ((1, 3), (5, 2)), ((1, 9),))
    """
    layout: list[tuple[int, int]] = []
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size == 1 or stride == 0:  # an expanded dimension repeats the same elements
            continue
        step, count = layout[-1] if layout else (0, 0)
        if layout and stride % step == 0 and stride <= step * count:
            layout[-1] = (step, count + stride // step * (size - 1))
        else:
            layout.append((stride, size))
    if not layout or layout[0][0] != 1:
        layout.insert(0, (1, 1))
    return tuple(layout)


def meets_itself(layout: Sequence[tuple[int, int]]) -> bool:
    """Return whether a view may cover an element twice, as overlapping windows do."""
    reach = 0
    for stride, size in layout:
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def shared(views: Sequence[View]) -> list[Shared]:
    """Return the overlap of each view with earlier ones.

    Disjoint slices of one memory share nothing.

    Raises:
        BadInput: if the overlapping views need more runs than the budget allows.
    """
    current().step(5 * len(views))
    current().keep(_BYTES_OF_VIEW * len(views), "who shares which memory")
    first: dict[View, int] = {}
    found = [Shared(first.setdefault(view, place), 0) for place, view in enumerate(views)]
    for group in _crossing(views, sorted(first.values(), key=lambda place: views[place][:2])):
        alone = len(group) == 1 and not meets_itself(views[group[0]].layout)
        swept = {group[0]: Shared(group[0], views[group[0]].size)} if alone else _swept(views, group)
        for place, share in swept.items():
            found[place] = share
    # Equal views have the same owner.
    return [
        share if share.owner == place else Shared(found[share.owner].owner, share.new)
        for place, share in enumerate(found)
    ]


def _crossing(views: Sequence[View], places: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of views whose spans overlap; a view without overlap is a group of its own."""
    group: list[int] = []
    memory, end = "", 0
    for place in places:
        view = views[place]
        if group and (view.memory != memory or view.start >= end):
            yield group
            group = []
        memory, end = view.memory, max(end, view.end) if group else view.end
        group.append(place)
    if group:
        yield group


def _swept(views: Sequence[View], group: Sequence[int]) -> dict[int, Shared]:
    """Assign each element to the first view that covers it, in one sweep through the memory."""
    count = sum(views[place].size // views[place].layout[0][1] for place in group)
    budget = current()
    try:
        budget.step(_STEPS_OF_RUN * count)
        budget.keep(_BYTES_OF_RUN * count, "its tensors")
    except BadInput as error:
        raise BadInput(f"its tensors overlap in memory in {count:,} pieces: {error}", code=error.code) from None
    runs = sorted(
        (start, start + views[place].layout[0][1], place) for place in group for start in _starts(views[place])
    )
    new = dict.fromkeys(group, 0)
    above = {place: place for place in group}  # union-find parents, towards the first linked view

    def root(place: int) -> int:
        while above[place] != place:
            above[place] = place = above[above[place]]
        return place

    open_: list[tuple[int, int]] = []  # (index, end) of open runs
    position = 0
    last = max(end for _, end, _ in runs)
    for start, end, place in [*runs, (last, last, -1)]:
        while open_ and position < start:
            owner, until = open_[0]
            if until <= position:
                heappop(open_)
                continue
            new[owner] += min(until, start) - position
            position = min(until, start)
        position = start
        while open_ and open_[0][1] <= start:
            heappop(open_)
        if place < 0:
            break
        if open_:
            one, other = root(open_[0][0]), root(place)
            above[max(one, other)] = min(one, other)
        heappush(open_, (place, end))
    budget.keep(-_BYTES_OF_RUN * count, "its tensors")
    return {place: Shared(root(place), new[place]) for place in group}


def _starts(view: View) -> Iterator[int]:
    """Yield the start of each run of adjacent elements."""
    for steps in product(*(range(0, stride * size, stride) for stride, size in view.layout[1:])):
        yield view.start + sum(steps)
