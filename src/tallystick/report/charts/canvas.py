"""Collect the marks of a picture that grows downwards: boxes to scale, words, lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape

from tallystick.errors import visible
from tallystick.report.charts.svg import COLOURS, LETTER, cut, element, words
from tallystick.report.charts.tiles import Place

LINE = "#8a9099"
GROUND = "#ffffff"


class Canvas:
    """Marks, and the height that they have reached.

    Only what is drawn to scale is a ``rect``: frames, glyphs and lines are paths.
    """

    def __init__(self, x: float, width: float, scale: float) -> None:
        self.x, self.width = x, width  # of what is drawn now, in pixels
        self.scale = scale  # square pixels per parameter
        self.y = 0.0
        self._marks: list[str] = []

    @property
    def right(self) -> float:
        """The right edge of what is drawn now."""
        return self.x + self.width

    @property
    def content(self) -> str:
        """All marks as markup."""
        return "".join(self._marks)

    @contextmanager
    def collected(self) -> Iterator[list[str]]:
        """Collect what is drawn inside in a list, for the caller to add."""
        before, self._marks = self._marks, []
        collected = self._marks
        yield collected
        self._marks = before

    def add(self, *marks: str) -> None:
        """Add marks."""
        self._marks += marks

    @contextmanager
    def inside(self, margin: float) -> Iterator[None]:
        """Draw narrower, within a margin at both sides."""
        self.x, self.width = self.x + margin, self.width - 2 * margin
        yield
        self.x, self.width = self.x - margin, self.width + 2 * margin

    @contextmanager
    def part(self, role: str, title: str, tensors: tuple[str, ...] = (), **more: str) -> Iterator[None]:
        """Draw a part of the model that is pointed at as one, its space between its boxes too.

        Args:
            role: the key that it shares with its rows and terms.
            title: tooltip.
            tensors: names of its tensors.
            more: further attributes.
        """
        top = self.y
        with self.collected() as marks:
            yield
        spot = path(rounded(Place(self.x - 4, top, self.width + 8, self.y - top), 3), fill="transparent", class_="spot")
        tooltip = element("title", escape(visible(title)))
        names = {"data_tensor": " ".join(map(visible, tensors))} if tensors else {}
        self.add(element("g", tooltip + spot + "".join(marks), class_="part", data_part=role, **names, **more))

    def box(self, role: str, place: Place, title: str = "", **more: str | float) -> None:
        """Add a box to scale, at full precision."""
        tooltip = element("title", escape(visible(title))) if title else ""
        sizes = {name: f"{value:.4f}" for name, value in zip(Place._fields, place, strict=True)}
        self.add(
            element("rect", tooltip, class_=role, **sizes, fill=COLOURS[role], stroke=GROUND, stroke_width=0.8, **more)
        )

    def boxes(self, role: str, places: Sequence[Place], title: str, **more: str | float) -> None:
        """Add equal boxes to scale under one tooltip, as one path: there may be hundreds."""
        outline = "".join(f"M{x:.3f} {y:.3f}h{wide:.3f}v{high:.3f}h{-wide:.3f}z" for x, y, wide, high in places)
        tooltip = element("title", escape(visible(title)))
        self.add(
            element(
                "path", tooltip, class_=role, d=outline, fill=COLOURS[role], stroke=GROUND, stroke_width=0.8, **more
            )
        )

    def write(self, text: str, x: float, y: float, room: float, **more: str | float) -> float:
        """Add a line of text, cut to its room, and return its width."""
        said = cut(text, room)
        if said:
            self.add(words(said, x, y, **more))
        return len(said) * LETTER

    def named(self, text: str, place: Place, *, over: str = "") -> None:
        """Write a name into a box, if it fits there whole.

        Args:
            text: the name.
            place: the box.
            over: the box's role if lines cross it: its colour is drawn around the letters.
        """
        if place.height < 13 or len(text) * LETTER + 8 > place.width:
            return
        x, y = place.x + 5, place.y + min(place.height / 2 + 4, 15)
        if over:
            around = COLOURS[over]
            self.add(words(text, x, y, stroke=around, stroke_width=4, paint_order="stroke", class_=f"over {over}"))
        else:
            self.add(words(text, x, y))


def path(d: str, **more: str | float) -> str:
    """Return a path; lines unless `fill` is given."""
    return element("path", "", **{"d": d, "fill": "none", **more})


def rounded(place: Place, radius: float = 4) -> str:
    """Return the outline of a rectangle with round corners."""
    x, y, width, height = (round(one, 1) for one in place)
    r = min(radius, width / 2, height / 2)
    if not r:
        return f"M{x} {y}h{width}v{height}h{-width}z"
    return (
        f"M{x + r:g} {y:g}h{width - 2 * r:g}a{r:g} {r:g} 0 0 1 {r:g} {r:g}v{height - 2 * r:g}"
        f"a{r:g} {r:g} 0 0 1 {-r:g} {r:g}h{2 * r - width:g}a{r:g} {r:g} 0 0 1 {-r:g} {-r:g}v{2 * r - height:g}"
        f"a{r:g} {r:g} 0 0 1 {r:g} {-r:g}z"
    )


def arrow(x: float, y: float, towards: str) -> str:
    """Return an arrow's head with its tip at a point: ``"left"``, ``"right"`` or ``"down"``."""
    sides = {"left": ((5, -3.5), (5, 3.5)), "right": ((-5, -3.5), (-5, 3.5)), "down": ((-3.5, -5), (3.5, -5))}
    (a, b), (c, d) = sides[towards]
    return path(f"M{x:.1f} {y:.1f}l{a} {b}M{x:.1f} {y:.1f}l{c} {d}", stroke=LINE, stroke_width=1.2, class_="flow")
