"""The known names as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from tallystick.report.numbers import exact
from tallystick.report.table import Column, Table, draw


def show_presets(rows: Iterable[Mapping[str, Any]], out: Console, *, style: str = "table") -> None:
    """The names that are known, with their counts."""
    machine = style == "csv"
    columns: Sequence[Column] = [
        Column("name"),
        Column("architecture"),
        Column("parameters", True),
        Column("active", True),
    ]
    number = str if machine else exact
    cells = [[row["name"], row["architecture"], number(row["parameters"]), number(row["active"])] for row in rows]
    draw(Table(columns, cells), out, style=style)
