"""Draw a terminal report as HTML: lines and tables, for a page or a notebook."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from typing import Any

from rich.console import Console
from rich.text import Text

from tallystick.errors import visible
from tallystick.report.html.notebook import notebook_line

# CSS classes for the terminal's styles.
_CLASSES = {"bold": "strong", "dim": "note", "green": "good", "bold green": "strong good", "yellow": "warn"}
_CLASSES |= {"bold yellow": "strong warn", "red": "bad", "bold red": "strong bad"}


class Sheet(Console):
    """A console that writes lines as paragraphs."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), highlight=False, soft_wrap=True)

    def print(self, *objects: Any, **_: Any) -> None:
        """Write each object as a paragraph."""
        for line in objects:
            text = line if isinstance(line, Text) else Text(str(line))
            kind = _CLASSES.get(str(text.style))
            said = escape(visible(text.plain.strip()))
            self.file.write(f'<p class="{kind}">{said}</p>' if kind else f"<p>{said}</p>")


class NotebookSheet(Sheet):
    """A console that writes lines as paragraphs with inline styles."""

    def print(self, *objects: Any, **_: Any) -> None:
        """Write each object as a paragraph."""
        for line in objects:
            text = line if isinstance(line, Text) else Text(str(line))
            self.file.write(notebook_line(text.plain, str(text.style)))


def notebook(show: Callable[..., None], answer: Any, **options: Any) -> str:
    """Return a `show_` function's report as HTML for a notebook.

    Args:
        show: one of the `show_` functions.
        answer: its answer.
        options: its keyword arguments.
    """
    sheet = NotebookSheet()
    show(answer, sheet, style="notebook", **options)
    return f"<div>{sheet.file.getvalue()}</div>"  # type: ignore[attr-defined]


def section(show: Callable[..., None], *answer: Any, picture: str = "", **options: Any) -> str:
    """Return a `show_` function's report as HTML, with a picture above its first table.

    Args:
        show: one of the `show_` functions.
        answer: its arguments before the console.
        picture: markup.
        options: its keyword arguments.
    """
    sheet = Sheet()
    show(*answer, sheet, style="html", **options)
    drawn: str = sheet.file.getvalue()  # type: ignore[attr-defined]
    place = drawn.find('<div class="scroll"')
    place = len(drawn) if place < 0 else place
    return drawn[:place] + picture + drawn[place:]
