"""Print which operations keep a tie, as a table and as the documentation's page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tallystick.report.cells import Column, Table
from tallystick.report.table import draw

if TYPE_CHECKING:
    from tallystick.live.survive import Survival

PAGE = """\
# Which operations keep a tie

{on}What spreads a model over processes is run by two, and the row is what both see.

- **relation**: of embedding and head, afterwards; before, it is tied. The words are those of the [glossary](glossary.md); *copied* is
  equal values in separate memory, *untied* different ones.
- **parameters**: unique ones, more or fewer than before.
- **embedding**: whether its values are what they were. Where a tie was kept and something was done to the head alone, *other* says that it
  was done to the embedding as well.
- **gradients**: which tensors one backward through both uses reaches. *One tensor*: it gets the sum of the two. *Frozen*: neither is trained.
  *No values*: on the meta device.
- **problem**: its code, explained in [problems](problems/README.md).
"""
ON_GPT2 = """\
Written by `make survival`; a test runs all of it again and fails where a cell differs. Each operation is done by the real library, on a GPT-2 of two
layers whose head is its embedding; torchao's on such a Llama, since of GPT-2's layers the head alone is an nn.Linear.
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
        on = f"Each operation is done by the real library, on a small {answer.source}. " if answer.source else ON_GPT2
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
        "What mends it, and what it is then",
        Table([Column("operation"), Column("remedy"), Column("then")], remedies),
        out,
        style,
    )
    said = [[row.operation, row.said] for row in answer.rows if row.said]
    _section("What the libraries said about it", Table([Column("operation"), Column("said")], said), out, style)


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
