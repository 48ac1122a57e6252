"""Draw the branches of a tree, from the depth of each line."""

from __future__ import annotations

from collections.abc import Sequence


def branches(depths: Sequence[int]) -> list[str]:
    """Return the branches before each line; depth 1 has none.

    >>> branches([1, 2, 3, 2, 1])
    ['', '├ ', '│ └ ', '└ ', '']
    """
    drawn = []
    for place, depth in enumerate(depths):
        columns = ["│ " if _goes_on(depths, place, level) else "  " for level in range(2, depth)]
        if depth > 1:
            columns.append("├ " if _goes_on(depths, place, depth) else "└ ")
        drawn.append("".join(columns))
    return drawn


def _goes_on(depths: Sequence[int], place: int, level: int) -> bool:
    """Return whether a later line has this depth before a shallower one comes."""
    for depth in depths[place + 1 :]:
        if depth <= level:
            return depth == level
    return False
