"""Print the table of presets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from tallystick.report.numbers import exact
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_presets(rows: Iterable[Mapping[str, Any]], out: Console, *, style: str = "table") -> None:
    """Print the presets, with parameter counts and the bytes of their weights."""
    number = str if style == "csv" else exact
    columns: Sequence[Column] = [
        Column("name"),
        Column("family"),
        Column("released"),
        Column("parameters", True),
        Column("active", True),
        Column("bytes", True),
    ]
    cells = [
        [
            row["name"],
            row["family"],
            row["released"] or "",
            *(number(row[key]) for key in ("parameters", "active", "bytes")),
        ]
        for row in rows
    ]
    draw(Table(columns, cells), out, style=style)
