"""Print which operations keep a tie, as a table and as the documentation's page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

if TYPE_CHECKING:
    from tallystick.live.survive import Survival

PAGE = """\
# Which operations keep a tie

{on}Sharding operations run on two processes; a row shows what both processes see.

- **relation**: between embedding and head afterwards; before, they are tied. The [glossary](glossary.md) defines the words: *copied* means
  equal values in separate memory, *untied* means different values.
- **parameters**: the change of the unique count.
- **embedding**: whether its values are unchanged. *Other* after a kept tie: the operation was meant for the head, and changed the embedding too.
- **gradients**: which tensors get a gradient from one backward pass through both uses. *One tensor*: it gets the sum. *Frozen*: neither is
  trained. *No values*: on the meta device.
- **problem**: its code, explained in [problems](problems/README.md).
"""
ON_GPT2 = """\
Written by `make survival`; a test runs every operation again and fails if a cell differs. Each operation uses the real library, on a GPT-2 with
two layers and a tied head. torchao's run on such a Llama, because GPT-2's only nn.Linear is its head.
"""


def show_survival(answer: Survival, out: Console, *, style: str = "table") -> None:
    """Print each operation's effect on the tie, its remedy, and the libraries' messages."""
    if style == "csv":
        found = [asdict(row) for row in answer.rows]
        rows = [["" if value is None else str(value) for value in row.values()] for row in found]
        draw(Table([Column(name) for name in found[0]] if found else [], rows), out, style=style)
        return
    markdown = style == "markdown"
    made_with = ", ".join(f"{library} {number}" for library, number in answer.versions.items())
    if markdown:
        on = f"Each operation uses the real library, on a small {answer.source}. " if answer.source else ON_GPT2
        for line in PAGE.format(on=on).split("\n"):
            out.print(Text(line))
    out.print(Text(f"Made with {made_with}."))
    for note in answer.notes:
        out.print(Text(f"note: {note}"))
    columns = ["operation", "library", "relation", "parameters", "embedding", "gradients", "problem"]
    cells = [
        [
            row.operation,
            row.library,
            row.after or row.outcome,
            "" if row.parameters is None else f"{row.parameters:+,}" if row.parameters else "0",
            row.values,
            row.gradients,
            f"[{row.code}](problems/{row.code}.md)" if row.code and markdown else row.code,
        ]
        for row in answer.rows
    ]
    _section("", Table([Column(name, name == "parameters") for name in columns], cells), out, style)
    remedies = [
        [row.operation, row.remedy, ", ".join(word for word in (row.mended, row.mended_gradients) if word)]
        for row in answer.rows
        if row.remedy
    ]
    _section(
        "Fixes",
        Table([Column("operation"), Column("remedy"), Column("result")], remedies),
        out,
        style,
    )
    said = [[row.operation, row.said] for row in answer.rows if row.said]
    _section("Library warnings", Table([Column("operation"), Column("warning")], said), out, style)


def _section(title: str, table: Table, out: Console, style: str) -> None:
    if not table.rows:
        return
    out.print()
    if title:
        out.print(Text(f"## {title}" if style == "markdown" else title, style="bold"))
        out.print()
    if style == "markdown":
        table = table._replace(rows=[[cell.replace("|", "\\|") for cell in row] for row in table.rows])
    draw(table, out, style=style)
