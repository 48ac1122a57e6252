"""One table, three ways out: terminal, Markdown, CSV. JSON is the answers' own `to_dict`."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import IO, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

BAR = 24  # characters that stand for the whole
ENDLESS = 100_000  # a pipe has no width at which to cut a tensor's name


class Column(NamedTuple):
    """A heading, and whether its cells are numbers."""

    name: str
    number: bool = False


class Table(NamedTuple):
    """Cells as text; `shares`, one for each row, become bars where there is a terminal to draw them in."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    shares: Sequence[float] = ()
    total: Sequence[str] = ()


def console(file: IO[str] | None = None) -> Console:
    """Where text goes: with colours in a terminal, plain and of any width in a pipe."""
    out = Console(file=file or sys.stdout, highlight=False, soft_wrap=True)
    return out if out.is_terminal else Console(file=out.file, highlight=False, soft_wrap=True, width=ENDLESS)


def draw(table: Table, out: Console, *, style: str = "table") -> None:
    """Print a table: ``table`` for people, ``markdown`` for a page, ``csv`` for a program."""
    if style == "csv":
        writer = csv.writer(out.file, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        writer.writerows(table.rows)
        return
    bars = bool(table.shares) and out.is_terminal and style == "table"
    if style == "markdown":  # a page has no footers: the total is its last row
        drawn = RichTable(box=box.MARKDOWN, show_edge=True)
        table = table._replace(rows=[*table.rows, table.total] if table.total else table.rows, total=())
    else:
        drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, show_footer=bool(table.total))
    for place, column in enumerate(table.columns):
        footer = Text(table.total[place]) if table.total else ""
        drawn.add_column(
            column.name, footer, justify="right" if column.number else "left", no_wrap=True, overflow="fold"
        )
    if bars:
        drawn.add_column("", no_wrap=True)
    for place, row in enumerate(table.rows):
        cells = [Text(cell) for cell in row]
        drawn.add_row(*cells, *([Text(bar(table.shares[place]), style="cyan")] if bars else []))
    out.print(drawn)


def bar(share: float) -> str:
    """A bar of eighths of a character.

    >>> bar(0.5) == "█" * 12
    True
    """
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
