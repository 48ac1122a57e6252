"""Draw used and free memory of a device as one bar in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.report.numbers import giga

WIDEST = 40  # characters of the bar
MARGIN = 30  # characters for the numbers after it


def show_usage(used: int, room: int, out: Console) -> None:
    """Print the bar, with the bytes that are free or missing; nothing in a pipe.

    Args:
        used: bytes that the model needs.
        room: bytes that the device has.
        out: where to print.
    """
    width = min(WIDEST, out.width - MARGIN)
    if not out.is_terminal or width < 1:
        return
    over = used > room
    full = width if over else round(width * used / room)
    left = f"{giga(used - room)} GB too much" if over else f"{giga(room - used)} GB free"
    bar = legible_bar(full, width - full, out.encoding)
    out.print(
        Text("  ")
        .append(bar[:full], style="red" if over else "green")
        .append(bar[full:], style="dim")
        .append(f" {left}")
    )


def legible_bar(full: int, free: int, encoding: str) -> str:
    """Return the bar in characters that the encoding has.

    >>> legible_bar(3, 2, "ascii"), legible_bar(3, 2, "utf-8")
    ('###..', '███░░')
    """
    from tallystick.legible import legible

    return legible("█" * full + "░" * free, encoding)
