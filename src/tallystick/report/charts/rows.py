"""What all rows of a diagram have: the words for a part, its header, its box to scale."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.answers.blocks import Part, Piece
from tallystick.report.charts.canvas import Canvas, path
from tallystick.report.charts.svg import INK, LETTER, words
from tallystick.report.charts.tiles import Place
from tallystick.report.numbers import exact, percent, rough

LOW, MIDDLE, HIGH = 12.0, 18.0, 44.0  # least pixels of height: of a norm, another box, an attention
HEADER = 20.0
THIN = 1.5  # pixels: a thinner box is marked
WORDS = {
    "token_embedding": "token embedding", "position_embedding": "position embedding", "mlp": "MLP", "ssm": "recurrent",
    "head": "LM head", "conv": "convolution",
}  # fmt: skip


def words_of(part: Part) -> str:
    """Return what a part is, in words."""
    if part.role == "attention" and ("cross" in part.name.lower() or "enc" in part.name.lower().split(".")[-1]):
        return "cross-attention"
    if "shared_expert" in part.name:
        return "shared experts" if part.role == "mlp" else "shared gate"
    return WORDS.get(part.role, part.role)


def said_of(part: Part, layers: int, total: int) -> str:
    """Return a part's tooltip."""
    sizes = ", ".join(dict.fromkeys(piece.name for piece in part.pieces))
    times = f"{exact(layers)} × {exact(part.parameters)} = " if layers > 1 else ""
    parameters = part.parameters * layers
    return f"{words_of(part)} ({sizes}): {times}{exact(parameters)} parameters ({percent(parameters / (total or 1))})"


def tensors_of(part: Part) -> tuple[str, ...]:
    """Return the names of a part's tensors, with * for numbers."""
    return tuple(name for piece in part.pieces for name in piece.tensors)


def with_share(parameters: int, total: int) -> str:
    """Return a count with its share of the whole.

    >>> with_share(38_597_376, 124_439_808), with_share(1536, 124_439_808)
    ('38.6M · 31.0%', '1.5K · <0.1%')
    """
    share = parameters / (total or 1)
    return f"{rough(parameters)} · {percent(share) if share >= 0.0005 else '<0.1%'}"


def number_of(parameters: int, total: int) -> str:
    """Return a count with its share, or nothing for 0."""
    return with_share(parameters, total) if parameters else ""


def header(
    canvas: Canvas,
    part: Part,
    layers: int,
    total: int,
    ways: Sequence[str],
    *,
    name: str | None = None,
    room: float = 0,
) -> None:
    """Write what a part is, its details in the first way that fits, and its parameters.

    Args:
        canvas: where; its height is moved below the line.
        part: the part.
        layers: how many layers have it.
        total: parameters of the whole model.
        ways: the details, from long to short.
        name: what the part is called; None takes its own words.
        room: pixels kept free at the right end.
    """
    number = number_of(part.parameters * layers, total)
    y, end = canvas.y + 14, canvas.right - room
    canvas.add(words(number, end, y, text_anchor="end", class_="quiet"))
    space = end - canvas.x - len(number) * LETTER - 8
    title = words_of(part) if name is None else name
    used = canvas.write(title, canvas.x, y, space) + 8 if title else 0.0
    fitting = next((one for one in ways if len(one) * LETTER <= space - used), "")
    if fitting:
        canvas.add(words(fitting, canvas.x + used, y, **({"class_": "quiet"} if title else {})))
    canvas.y += HEADER


def place_of(canvas: Canvas, parameters: int, least: float) -> Place:
    """Return a box of the right area: as low as allowed, at most as wide as the canvas."""
    area = parameters * canvas.scale
    height = max(least, area / canvas.width)
    return Place(canvas.x, canvas.y, area / height, height)


def hair(canvas: Canvas, place: Place) -> None:
    """Mark a box that is too thin to be seen."""
    if place.width < THIN:
        canvas.add(
            path(f"M{place.x:.1f} {place.y:.1f}v{place.height:.1f}", stroke=INK, stroke_width=0.6, class_="hair")
        )


def tooltip_of(piece: Piece, layers: int, name: str = "", how: str = "") -> str:
    """Return the tooltip of a piece, under its own name or another, with further words."""
    shape = " × ".join(map(exact, piece.shape))
    times = f"{exact(layers)} × " if layers > 1 else ""
    return f"{name or piece.name}: {times}{shape}{how}, {exact(piece.parameters * layers)} parameters"
