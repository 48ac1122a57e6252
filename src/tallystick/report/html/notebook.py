"""Draw a table and lines of text for a notebook: HTML with inline styles alone.

Notebooks have a style of their own, light or dark, and some strip style sheets. So colours are
mid-tones, text has the notebook's colour, and alignment and gaps stand in each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tallystick.errors import visible
from tallystick.report.tables.cells import Table

BAR_PIXELS = 160
_LINE = "1px solid rgba(128,128,128,.5)"
# Styles of the terminal's lines; a mid-tone is readable on white and on black.
_LINES = {
    "bold": "font-weight:600",
    "dim": "opacity:.7",
    "green": "color:#2a8a4a",
    "yellow": "color:#b07800",
    "red": "color:#d0453e",
}


def notebook_line(text: str, style: str) -> str:
    """Return a line of text as a paragraph.

    Args:
        text: the line.
        style: the terminal's, such as ``"bold red"``.
    """
    styles = ["margin:2px 0", *(_LINES[word] for word in style.split() if word in _LINES)]
    return f'<p style="{";".join(styles)}">{escape(visible(text.strip()))}</p>'


def notebook_table(table: Table) -> str:
    """Return a table with its bars, and with its total as the last row.

    Args:
        table: cells as text.
    """
    numbers = [column.number for column in table.columns]
    bars = [_bar(share) for share in table.shares] or [""] * len(table.rows)
    head, total = f"border-bottom:{_LINE};font-weight:600", f"border-top:{_LINE};font-weight:600"
    drawn = _row([column.name for column in table.columns], numbers, "th", head, _blank("th", head, table))
    drawn += "".join(_row(row, numbers, "td", "", bar) for row, bar in zip(table.rows, bars, strict=True))
    if table.total:
        drawn += _row(table.total, numbers, "td", total, _blank("td", total, table))
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:8px 0;'
        f'font-variant-numeric:tabular-nums">{drawn}</table></div>'
    )


def _row(cells: Sequence[str], numbers: Sequence[bool], kind: str, style: str, bar: str = "") -> str:
    drawn = "".join(
        f'<{kind} style="text-align:{"right" if number else "left"};vertical-align:top;padding:2px 20px 2px 0;'
        f'{"white-space:nowrap;" if number else ""}{style}">{escape(cell)}</{kind}>'
        for cell, number in zip(cells, numbers, strict=True)
    )
    return f'<tr style="background:none">{drawn}{bar}</tr>'


def _blank(kind: str, style: str, table: Table) -> str:
    """Return the cell above or below the bars, if there are any."""
    return f'<{kind} style="{style}"></{kind}>' if table.shares else ""


def _bar(share: float) -> str:
    return (
        '<td style="text-align:left;vertical-align:middle">'
        f'<div style="background:#4c9aff;height:.8em;width:{BAR_PIXELS * share:.1f}px"></div></td>'
    )
