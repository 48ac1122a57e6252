"""Which elements of one memory several tensors see: who shares with whom, and what each adds to those before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

from tallystick.core.budget import current
from tallystick.errors import BadInput

# Neighbouring elements of tensors that cross another, a run for each row of a slice of columns: steps and bytes of each.
_STEPS_OF_RUN, _BYTES_OF_RUN = 20, 300
_BYTES_OF_VIEW = 300  # and of each view


class View(NamedTuple):
    """The elements of a memory that a tensor sees; equal views are equal elements."""

    memory: str
    start: int
    layout: tuple[tuple[int, int], ...]  # as `joined` gives it

    @property
    def end(self) -> int:
        """The element after the last."""
        return self.start + sum((size - 1) * stride for stride, size in self.layout) + 1

    @property
    def size(self) -> int:
        """Distinct elements, or more where the view meets itself."""
        return math.prod(size for _, size in self.layout)


class Shared(NamedTuple):
    """What a tensor has in common with those before it."""

    owner: int  # the place of the first that it is linked to by common elements; its own where it is that one
    new: int  # elements that none before it sees


def joined(shape: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(stride, size) by rising stride, with dimensions that continue one another made one.

    A dense tensor is ``((1, n),)`` whether it is transposed or not, and so are windows that overlap. Strides are in
    elements; the shape holds no zero.

    >>> joined((2, 3), (3, 1)), joined((2, 3), (5, 1)), joined((6, 4), (1, 1))
    (((1, 6),), ((1, 3), (5, 2)), ((1, 9),))
    """
    layout: list[tuple[int, int]] = []
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size == 1 or stride == 0:  # an expanded dimension shows the same elements again
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
    """Whether a view may show one element at two places, as windows that overlap do."""
    reach = 0
    for stride, size in layout:
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def shared(views: Sequence[View]) -> list[Shared]:
    """What each view shares with those before it.

    Disjoint slices of one memory share nothing.

    Raises:
        BadInput: where views cross in more runs than the budget of the source has room for.
    """
    current().step(5 * len(views))
    current().keep(_BYTES_OF_VIEW * len(views), "who shares which memory")
    first: dict[View, int] = {}
    found = [Shared(first.setdefault(view, place), 0) for place, view in enumerate(views)]
    for group in _crossing(views, sorted(first.values(), key=lambda place: views[place][:2])):
        alone = len(group) == 1 and not meets_itself(views[group[0]].layout)
        swept = {group[0]: Shared(group[0], views[group[0]].size)} if alone else _swept(views, group)
        for place, told in swept.items():
            found[place] = told
    # An equal view belongs to whom its equal belongs to.
    return [
        told if told.owner == place else Shared(found[told.owner].owner, told.new) for place, told in enumerate(found)
    ]


def _crossing(views: Sequence[View], places: Sequence[int]) -> Iterator[list[int]]:
    """Places whose spans overlap, by memory and start; a view that nobody crosses is alone."""
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
    """Each element given to the first view that sees it, going through the memory once."""
    count = sum(views[place].size // views[place].layout[0][1] for place in group)
    budget = current()
    try:
        budget.step(_STEPS_OF_RUN * count)
        budget.keep(_BYTES_OF_RUN * count, "its tensors")
    except BadInput as error:
        raise BadInput(
            f"tensors cross one another in its memory in {count:,} pieces: {error}", code=error.code
        ) from None
    runs = sorted(
        (start, start + views[place].layout[0][1], place) for place in group for start in _starts(views[place])
    )
    new = dict.fromkeys(group, 0)
    above = {place: place for place in group}  # towards the first that it is linked to

    def root(place: int) -> int:
        while above[place] != place:
            above[place] = place = above[above[place]]
        return place

    open_: list[tuple[int, int]] = []  # (place, end) of runs that may go on
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
    """Where each run of neighbouring elements begins."""
    for steps in product(*(range(0, stride * size, stride) for stride, size in view.layout[1:])):
        yield view.start + sum(steps)
