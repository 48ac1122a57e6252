"""Lay out tiles with areas or lengths in proportion to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST_ROWS = 40


class Place(NamedTuple):
    """A rectangle, in pixels."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, margin: float, *, top: float = 0) -> Place:
        """Return the rectangle inside a margin and below a heading of `top` pixels."""
        return Place(
            self.x + margin,
            self.y + margin + top,
            max(self.width - 2 * margin, 0),
            max(self.height - 2 * margin - top, 0),
        )


def squarified(sizes: Sequence[int], place: Place) -> list[Place]:
    """Return a tile per size, with proportional areas and nearly square (Bruls et al. 2000).

    >>> squarified([6, 2, 2], Place(0, 0, 10, 10))[0]
    Place(x=0, y=0, width=6.0, height=10.0)
    """
    total = sum(sizes)
    places = [Place(place.x, place.y, 0, 0)] * len(sizes)
    if not total or place.width <= 0 or place.height <= 0:
        return places
    scale = place.width * place.height / total
    left = sorted((number for number, size in enumerate(sizes) if size), key=lambda number: -sizes[number])
    start = 0
    while start < len(left):
        side = min(place.width, place.height)
        if side <= 0:  # a remainder of rounding
            break
        end, area = start + 1, sizes[left[start]] * scale
        largest = area
        while end < len(left):
            one = sizes[left[end]] * scale
            if _worst(largest, one, area + one, side) > _worst(largest, sizes[left[end - 1]] * scale, area, side):
                break
            end, area = end + 1, area + one
        place = _filled([(number, sizes[number] * scale) for number in left[start:end]], area, place, places)
        start = end
    return places


def _worst(largest: float, smallest: float, area: float, side: float) -> float:
    """Return the worst aspect ratio of a strip's rectangles."""
    return max(side * side * largest / (area * area), area * area / (side * side * smallest))


def _filled(strip: Sequence[tuple[int, float]], area: float, place: Place, places: list[Place]) -> Place:
    """Place a strip along the shorter side, and return the remaining area."""
    x, y, width, height = place
    if width >= height:
        depth = min(area / height, width)  # what remains of a sum has its rounding
        for number, one in strip:
            length = one / area * height
            places[number] = Place(x, y, depth, length)
            y += length
        return Place(x + depth, place.y, width - depth, height)
    depth = min(area / width, height)
    for number, one in strip:
        length = one / area * width
        places[number] = Place(x, y, length, depth)
        x += length
    return Place(place.x, y + depth, width, height - depth)


def in_rows(sizes: Sequence[int], place: Place) -> list[Place]:
    """Return a tile per size, with proportional areas, in rows that are read like a text.

    The rows have about equal areas; as many as make the tiles most nearly square.

    >>> [(one.x, one.y) for one in in_rows([1, 1, 1, 1], Place(0, 0, 10, 10))]
    [(0, 0), (5.0, 0), (0, 5.0), (5.0, 5.0)]
    """
    total = sum(sizes)
    if not total or place.width <= 0 or place.height <= 0:
        return [Place(place.x, place.y, 0, 0)] * len(sizes)
    laid = (_rows(sizes, total, rows, place) for rows in range(1, min(len(sizes), MOST_ROWS) + 1))
    return min(laid, key=_elongation)


def _rows(sizes: Sequence[int], total: int, rows: int, place: Place) -> list[Place]:
    """Lay out at most `rows` rows."""
    cut: list[list[int]] = [[] for _ in range(rows)]
    before = 0
    for size in sizes:
        cut[min(rows - 1, (2 * before + size) * rows // (2 * total))].append(size)  # by its middle
        before += size
    places: list[Place] = []
    y = place.y
    for row in cut:
        height = place.height * sum(row) / total
        places += in_a_row(row, Place(place.x, y, place.width, height))
        y += height
    return places


def _elongation(places: Sequence[Place]) -> float:
    """Return how far tiles are from squares, each by its area: 1 for squares."""
    found = [(max(one.width, one.height) ** 2, one.width * one.height) for one in places if one.width and one.height]
    return sum(square for square, _ in found) / (sum(area for _, area in found) or 1)


def in_a_row(sizes: Sequence[int], place: Place) -> list[Place]:
    """Return a tile for each size from left to right, with proportional widths."""
    total, x, places = sum(sizes) or 1, place.x, []
    for size in sizes:
        width = place.width * size / total
        places.append(Place(x, place.y, width, place.height))
        x += width
    return places
