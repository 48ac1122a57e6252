"""Fit a table to a terminal's width: fold text, drop columns, never cut a number.

>>> broken("model.layers.12.mlp.down_proj.weight", 16)
['model.layers.12.', 'mlp.down_proj.', 'weight']
>>> broken("weights in 16,060,522,496 bytes", 14)
['weights in', '16,060,522,496', 'bytes']
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from tallystick.report.tables.cells import Table

# Least characters of a folded column: 16 splits few words, below 12 nothing is readable.
FOLDED = (16, 12)
BETWEEN, EDGES = 3, 2  # spaces between two columns, and around all columns
_ATOM = re.compile(r"[-+−]?\d+(?:[.,]\d+)*%?|.", re.DOTALL)  # a number, or one character of a word
_ENDS = (" ", "./·×+=,:;)|", "_-")  # characters after which a line may end, the best first


def needed(widths: Sequence[int]) -> int:
    """Return the width of a table with columns of these widths, spaces included."""
    return sum(widths) + BETWEEN * (len(widths) - 1) + EDGES


def fitted(table: Table, width: int) -> tuple[Table, list[int]] | None:
    """Return the widest version of a table that fits, with its column widths; None if none fits."""
    for kept in FOLDED:
        for one in (table, *table.narrower):
            if widths := _widths(one, width, kept):
                return one, widths
    return None


def _widths(table: Table, width: int, kept: int) -> list[int]:
    """Return the column widths, folded text at least `kept` wide; [] if the table does not fit."""
    widths, least = [], []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in (*table.rows, *([table.total] if table.total else []))]
        longest = max((cell_len(cell) for cell in cells), default=0)
        widths.append(max(longest, cell_len(column.name)))
        word = max(map(cell_len, column.name.split()), default=0)
        least.append(max(word, longest if column.number else min(longest, max(kept, *map(_longest_atom, cells)))))
    while needed(widths) > width:
        place = max(range(len(widths)), key=lambda place: (widths[place] > least[place], widths[place]))
        if widths[place] <= least[place]:
            return []
        widths[place] -= 1
    return widths


def _longest_atom(text: str) -> int:
    return max(map(cell_len, _ATOM.findall(text)), default=0)


def broken(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width`, after words or parts of names.

    A number stays whole, even if it is longer.
    """
    lines, line = [], ""
    for atom in _ATOM.findall(text):
        if line and cell_len(line + atom.rstrip()) > width:
            kept, line = _ended(line)
            lines.append(kept)
        line += atom if line or not atom.isspace() else ""
    return [*lines, line.rstrip()]


def _ended(line: str) -> tuple[str, str]:
    """Split a full line after a word, else after a part of a name, else at its end."""
    for marks in _ENDS:
        end = max(line.rfind(mark) for mark in marks) + 1
        if end > 0 and not _inside_number(line, end):
            return line[:end].rstrip(), line[end:].lstrip()
    return line.rstrip(), ""


def _inside_number(line: str, end: int) -> bool:
    return any(found.start() < end < found.end() for found in _ATOM.finditer(line))


def stacked(table: Table, width: int) -> list[str]:
    """Return each row as a block of lines: one cell per line after its column's name."""
    rows = [*table.rows, *([table.total] if table.total else [])]
    names = [column.name for column in table.columns]
    margin = max(map(cell_len, names), default=0) + 2
    lines = []
    for row in rows:
        for name, cell in zip(names, row, strict=True):
            pieces = broken(cell, max(width - margin, FOLDED[-1])) if cell else []
            lines += [
                f"{label:<{margin}}{piece}" for label, piece in zip([name] + [""] * len(pieces), pieces, strict=False)
            ]
        lines.append("")
    return lines[:-1]
