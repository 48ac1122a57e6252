"""Draw one table as terminal text, Markdown, CSV or HTML.

JSON is each answer's own `to_dict`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table as RichTable
from rich.text import Text

from tallystick.errors import visible
from tallystick.legible import legible
from tallystick.report.tables.cells import Table
from tallystick.report.tables.narrow import BETWEEN, broken, fitted, needed, stacked

BAR = 24  # characters of a bar for 100%
SHORTEST_BAR = 8  # a shorter bar shows nothing
FURTHER = 2  # indent of a folded line's continuation
ENDLESS = 100_000  # characters: a pipe has no width at which to cut a tensor's name


class _Visible(Console):
    """A console that prints each text as one line, with control characters escaped."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, with the unprintable characters of texts escaped."""
        super().print(*(_shown(one) for one in objects), **options)


def _shown(one: Any) -> Any:
    if isinstance(one, Text) and not one.plain.isprintable():
        return Text(visible(one.plain), style=one.style)
    return one


def console(file: IO[str] | None = None) -> Console:
    """Return a console: with colours in a terminal, plain and of unlimited width in a pipe."""
    out = _Visible(file=file or sys.stdout, highlight=False, emoji=False, soft_wrap=True)
    return out if out.is_terminal else _endless(out)


def _endless(out: Console) -> Console:
    return _Visible(file=out.file, highlight=False, emoji=False, soft_wrap=True, width=ENDLESS)


class PlainText(_Visible):
    """A console for text without colour, each line folded to a width, wherever it is shown."""

    def __init__(self, file: IO[str], width: int) -> None:
        super().__init__(
            file=file, width=width, color_system=None, force_terminal=False, force_jupyter=False,
            highlight=False, emoji=False, soft_wrap=True,
        )  # fmt: skip

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, with texts folded after words and continued under an indent."""
        for one in objects or ("",):
            for line in self._folded(one) if isinstance(one, Text) else (one,):
                super().print(line, **options)

    def _folded(self, text: Text) -> list[Text]:
        line = visible(text.plain)
        if cell_len(line) <= self.width:
            return [Text(line)]
        indent = len(line) - len(line.lstrip())
        first, *rest = broken(line.strip(), self.width - indent - FURTHER)
        return [Text(" " * indent + first), *(Text(" " * (indent + FURTHER) + piece) for piece in rest)]


def draw(table: Table, out: Console, *, style: str = "table") -> None:
    """Print a table.

    Args:
        table: the table.
        out: where to print.
        style: ``table`` for people, ``markdown`` or ``html`` for a page, ``notebook`` for HTML
            without a style sheet, ``csv`` for a program.
    """
    table = _one_line(table, out.encoding)
    if style == "csv":
        import csv

        writer = csv.writer(out.file, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        writer.writerows(table.rows)
    elif style == "html":
        out.file.write(_html(table))
    elif style == "notebook":
        from tallystick.report.html.notebook import notebook_table

        out.file.write(notebook_table(table))
    elif style == "markdown":  # Markdown tables have no footer: the total is the last row
        rows = [*table.rows, table.total] if table.total else table.rows
        drawn = _drawn(table._replace(rows=rows, total=()), [], RichTable(box=box.MARKDOWN, show_edge=True))
        (_endless(out) if out.is_terminal else out).print(drawn)
    else:
        _in_terminal(table, out)


def _one_line(table: Table, encoding: str) -> Table:
    """Return the table with each cell on one line, in `encoding`, without control characters."""

    def cells(row: Sequence[str]) -> list[str]:
        return [legible(visible(cell), encoding) for cell in row]

    narrower = [_one_line(one, encoding) for one in table.narrower]
    return table._replace(rows=[cells(row) for row in table.rows], total=cells(table.total), narrower=narrower)


def _in_terminal(table: Table, out: Console) -> None:
    """Print the table folded to the terminal's width, with bars if they fit; else by row."""
    found = fitted(table, out.width)
    if found is None:
        for line in stacked(table, out.width):
            out.print(Text(line))
        return
    table, widths = found
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, show_footer=bool(table.total))
    room = min(out.width - needed(widths) - BETWEEN, BAR)
    bars = [bar(share, room) for share in table.shares] if out.is_terminal and room >= SHORTEST_BAR else []
    _print_stripped(_drawn(table, widths, drawn, bars), out)


def _print_stripped(drawn: RichTable, out: Console) -> None:
    """Print a table without the blanks that pad the ends of its lines."""
    for line in out.render_lines(drawn, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        end = [Segment(line[-1].text.rstrip(), line[-1].style)] if line else []
        out.print(Segments([*line[:-1], *end, Segment.line()]), crop=False)


def _drawn(table: Table, widths: Sequence[int], drawn: RichTable, bars: Sequence[str] = ()) -> RichTable:
    """Fill rich's table with the cells, folded to `widths` if given."""

    def cell(text: str, place: int) -> Text:
        return Text("\n".join(broken(text, widths[place])) if widths else text)

    for place, column in enumerate(table.columns):
        footer = cell(table.total[place], place) if table.total else ""
        drawn.add_column(
            cell(column.name, place),
            footer,
            justify="right" if column.number else "left",
            no_wrap=True,
            overflow="fold",
        )
    if bars:
        drawn.add_column("", no_wrap=True)
    for number, row in enumerate(table.rows):
        cells = [cell(text, place) for place, text in enumerate(row)]
        drawn.add_row(*cells, *([Text(bars[number], style="cyan")] if bars else []))
    return drawn


def _html(table: Table) -> str:
    """Return the table in a container that the keyboard can scroll."""
    from html import escape  # a slow import that other styles do not need

    def cells(row: Sequence[str], first: str) -> str:
        """Return a row's cells; the first cell is the row's header."""
        kinds = [first, *["td"] * (len(row) - 1)]
        return "".join(
            f"<{kind}{' class=n' if column.number else ''}>{escape(cell)}</{kind.partition(' ')[0]}>"
            for kind, column, cell in zip(kinds, table.columns, row, strict=True)
        )

    def length(place: int) -> str:
        if not table.shares:
            return ""
        drawn = f'<rect width="{120 * table.shares[place]:.1f}" height="10"/>'
        return f'<td><svg class="share" width="120" height="10" aria-hidden="true">{drawn}</svg></td>'

    head = "".join(f"<th scope=col{' class=n' if one.number else ''}>{escape(one.name)}</th>" for one in table.columns)
    rows = [
        f"<tr{_linked(table, place)}>{cells(row, 'th scope=row')}{length(place)}</tr>"
        for place, row in enumerate(table.rows)
    ]
    blank = "<td></td>" if table.shares else ""
    total = f"<tfoot><tr>{cells(table.total, 'th scope=row')}{blank}</tr></tfoot>" if table.total else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="table by {escape(table.columns[0].name)}"><table>'
        f"<thead><tr>{head}{blank}</tr></thead><tbody>{''.join(rows)}</tbody>{total}</table></div>"
    )


def _linked(table: Table, place: int) -> str:
    """Return a row's keys: the part of the model that it is of, and its tensors."""
    from html import escape

    keys = {"part": table.parts, "tensor": table.tensors}
    return "".join(f' data-{key}="{escape(visible(of[place]))}"' for key, of in keys.items() if of and of[place])


def bar(share: float, width: int = BAR) -> str:
    """Return a bar in eighths of a character.

    >>> bar(0.5) == "█" * 12
    True
    """
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
