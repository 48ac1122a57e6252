"""Print a count in a terminal, in a pipe or on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tallystick.core.entries import Tie
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.report.numbers import exact, in_bytes, percent, rough
from tallystick.report.tables.branches import branches
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_count(
    ledger: Ledger, out: Console, *, by: str = "role", depth: int | None = None, style: str = "table"
) -> None:
    """Print the count, its breakdown, the ties and the notes.

    Args:
        ledger: the model.
        out: where to print.
        by: grouping: ``"role"``, ``"layer"``, ``"module"``, ``"tensor"`` or ``"dtype"``.
        depth: levels of the module tree; None shows all.
        style: as for `draw`.
    """
    table = _breakdown(ledger, by, depth, machine=style == "csv")
    if style == "csv":
        draw(table, out, style=style)
        return
    heading = (
        ledger.source if ledger.architecture in (None, ledger.source) else f"{ledger.source} ({ledger.architecture})"
    )
    totals = ledger.totals
    bold = "**" if style == "markdown" else ""
    out.print(Text(f"{heading}: {bold}{exact(ledger.total)}{bold} parameters ({rough(ledger.total)})", style="bold"))
    lead = "- " if style == "markdown" else "  "
    out.print()
    for line in _other_totals(totals):
        out.print(Text(lead + line))
    out.print()
    draw(table, out, style=style)
    out.print()
    for tie in ledger.ties:
        out.print(Text(lead + _tie(tie), style="green" if tie.relation == "tied" else "yellow"))
    for note in ledger.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _other_totals(totals: Mapping[str, int | None]) -> list[str]:
    unique = totals["unique"]
    said = {
        "by_name": "if tied weights are counted twice",
        "parameters": "in distinct Parameter objects",
        "trainable": "trainable",
        "active": "active for one token",
        "stored": f"elements stored in {in_bytes(totals.get('stored_bytes') or 0)}",
        "buffers": "elements in buffers",
    }
    lines = [
        f"{exact(value)} {words}"
        for key, words in said.items()
        if (value := totals.get(key)) is not None and value != (0 if key == "buffers" else unique)
    ]
    embedding, rest = totals["embedding"], totals["non_embedding"]
    lines.append(f"{exact(embedding or 0)} embedding, {exact(rest or 0)} non-embedding")
    lines.append(f"{in_bytes(totals['bytes'] or 0)}")
    return lines


def _breakdown(ledger: Ledger, by: str, depth: int | None, *, machine: bool) -> Table:
    rows = ledger.rows(by, depth)
    if machine:
        columns = [Column(name) for name in rows[0]] if rows else [Column(by)]
        return Table(columns, [[_cell(value) for value in row.values()] for row in rows])
    shares = [row["share"] for row in rows]
    if by == "module":
        return _tree(rows, ledger.total)
    if by == "tensor":
        columns = [Column("tensor"), Column("shape", True), Column("role"), Column("dtype"), Column("parameters", True)]
        cells = [
            [row["tensor"], " × ".join(map(str, row["shape"])), row["role"], row["dtype"], _shared(row)] for row in rows
        ]
        whole = Table(columns, cells, shares, ["total", "", "", "", exact(ledger.total)])
        names = [template_of(row["tensor"])[0].replace("{}", "*") for row in rows]
        return whole._replace(parts=[row["role"] for row in rows], tensors=names)
    columns = [Column(by), Column("parameters", True), Column("share", True)]
    cells = [[row[by], exact(row["parameters"]), percent(row["share"])] for row in rows]
    total = ["total", exact(ledger.total), percent(1.0 if ledger.total else 0.0)]
    if by == "dtype":
        columns.append(Column("bytes", True))
        cells = [[*cell, in_bytes(row["bytes"])] for cell, row in zip(cells, rows, strict=True)]
        total.append(in_bytes(sum(row["bytes"] for row in rows)))
    return Table(columns, cells, shares, total, parts=[row[by] for row in rows] if by == "role" else ())


def _tree(rows: Sequence[Mapping[str, Any]], total: int) -> Table:
    """Return one row per module under its parent; runs of equal layers are one row."""
    names = branches([row["depth"] for row in rows])
    cells = []
    for branch, row in zip(names, rows, strict=True):
        name = f"{row['name'].replace('-', '–')} ×{row['run']:,}" if row["run"] > 1 else row["name"]
        shared = f"= {row['shares_with']}" if row["shares_with"] else exact(row["parameters"])
        of_one = exact(row["of_one"]) if row["copies"] > 1 else ""
        cells.append([branch + name, of_one, shared, percent(row["share"])])
    columns = [Column("module"), Column("of one", True), Column("parameters", True), Column("share", True)]
    table = Table(
        columns, cells, [row["share"] for row in rows], ["total", "", exact(total), percent(1.0 if total else 0.0)]
    )
    return table._replace(narrower=[table.only("module", "of one", "parameters")])


def _shared(row: Mapping[str, Any]) -> str:
    if row["buffer"]:
        return "buffer"
    return f"= {row['shares_with']}" if row["shares_with"] and not row["parameters"] else exact(row["parameters"])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "x".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _tie(tie: Tie) -> str:
    return f"{tie.relation}: {' = '.join(tie.names)} ({exact(tie.parameters)} shared, counted once)"
