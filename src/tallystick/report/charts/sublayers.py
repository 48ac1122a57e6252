"""Draw the parts of a block to scale: an attention, an MLP, experts in use and idle, a norm."""

from __future__ import annotations

from tallystick.answers.blocks import Part
from tallystick.report.charts.attention import draw_heads
from tallystick.report.charts.canvas import Canvas
from tallystick.report.charts.rows import (
    HIGH,
    LOW,
    MIDDLE,
    hair,
    header,
    number_of,
    place_of,
    said_of,
    tensors_of,
    tooltip_of,
    words_of,
)
from tallystick.report.charts.svg import LETTER, words
from tallystick.report.charts.tiles import Place, in_a_row, in_rows
from tallystick.report.numbers import exact

MOST_EXPERTS = 1024  # drawn one by one
LONGEST_CELL = 4  # of a grid's cells: the longer side by the shorter one


def draw_part(canvas: Canvas, part: Part, layers: int, total: int) -> None:
    """Draw a part at the canvas's height, and move the height below it.

    Args:
        canvas: where.
        part: the part.
        layers: number of layers that have it; the area covers all of them.
        total: parameters of the whole model.
    """
    with canvas.part(part.role, said_of(part, layers, total), tensors_of(part)):
        if part.role == "experts":
            _experts(canvas, part, layers, total)
        elif part.role == "attention" and part.parameters:
            draw_heads(canvas, part, layers, total)
        elif len(part.pieces) > 1 and part.role != "norm":
            _several(canvas, part, layers, total)
        else:
            _single(canvas, part, layers, total)


def _single(canvas: Canvas, part: Part, layers: int, total: int) -> None:
    """Draw one box, with its name inside, or after it."""
    place = place_of(canvas, part.parameters * layers, LOW if part.role == "norm" else MIDDLE)
    name, number = words_of(part), number_of(part.parameters * layers, total)
    needed = (len(name) + len(number) + 3) * LETTER + 10
    within, after = place.width >= needed, canvas.width - place.width >= needed
    if not within and not after:
        header(canvas, part, layers, total, ())
        place = place._replace(y=canvas.y)
    canvas.box(part.role, place)
    hair(canvas, place)
    if within or after:
        start = place.x + 6 if within else place.x + place.width + 7
        end = place.x + place.width - 6 if within else canvas.right
        middle = place.y + min(place.height / 2 + 4, 18)
        canvas.add(words(name, start, middle, **({"class_": "quiet"} if part.role == "norm" else {})))
        canvas.add(words(number, end, middle, text_anchor="end", class_="quiet"))
    canvas.y += place.height + 2


def _several(canvas: Canvas, part: Part, layers: int, total: int) -> None:
    """Draw the modules of a part from left to right."""
    header(canvas, part, layers, total, _state(part))
    place = place_of(canvas, part.parameters * layers, MIDDLE + 4)
    for piece, where in zip(part.pieces, in_a_row([piece.parameters for piece in part.pieces], place), strict=True):
        canvas.box(piece.role, where, tooltip_of(piece, layers))
        canvas.named(piece.name, where)
    hair(canvas, place)
    canvas.y += place.height + 3


def _state(part: Part) -> list[str]:
    return [f"state of {exact(int(part.keeps.state))} elements a sequence"] if part.keeps else []


def _experts(canvas: Canvas, part: Part, layers: int, total: int) -> None:
    """Draw each expert; those that one token does not use are pale."""
    number = max(piece.experts for piece in part.pieces)
    used = next((piece.used for piece in part.pieces if piece.experts == number), None)
    ways = [f"{exact(number)} experts"]
    if used is not None:
        ways = [
            f"{exact(number)} experts, {exact(used)} used for one token",
            f"{exact(used)} of {exact(number)} experts",
        ]
    header(canvas, part, layers, total, ways, name="")
    place = place_of(canvas, part.parameters * layers, HIGH)
    drawn = min(number, MOST_EXPERTS)
    lit = _spread(round((used or 0) * drawn / number), drawn)
    each = f"one of {exact(number)} experts: {exact(part.parameters // number)} parameters in a layer"
    cells = _grid(drawn, place)
    if used is None:
        canvas.boxes("experts", cells, each)
    else:
        idle = [where for at, where in enumerate(cells) if at not in lit]
        canvas.boxes("experts", idle, f"{each}, idle", fill_opacity=0.3, data_state="idle")
        canvas.boxes("experts", [cells[at] for at in sorted(lit)], f"{each}, used", data_state="used")
    hair(canvas, place)
    canvas.y += place.height + 3


def _grid(number: int, place: Place) -> list[Place]:
    """Return equal cells: in full rows, or in uneven rows if full ones would be too thin."""
    ways = [rows for rows in range(1, number + 1) if number % rows == 0]
    rows = min(ways, key=lambda rows: _elongation(place.width * rows / number, place.height / rows))
    width, height = place.width * rows / number, place.height / rows
    if _elongation(width, height) > LONGEST_CELL:
        return in_rows([1] * number, place)
    columns = number // rows
    return [
        Place(place.x + width * (at % columns), place.y + height * (at // columns), width, height)
        for at in range(number)
    ]


def _elongation(width: float, height: float) -> float:
    return max(width / height, height / width) if width and height else 1.0


def _spread(used: int, of: int) -> set[int]:
    """Return which experts are drawn as used: some that lie apart, as routing picks any.

    >>> sorted(_spread(2, 8))
    [0, 5]
    """
    places: set[int] = set()
    step, at = max(round(of * 0.618), 1), 0
    while len(places) < min(used, of):
        while at in places:
            at = (at + 1) % of
        places.add(at)
        at = (at + step) % of
    return places
