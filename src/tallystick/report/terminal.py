"""Answers as people read them in a terminal, or in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tallystick.ledger import Ledger, Tie
from tallystick.report.numbers import exact, in_bytes, percent, rough
from tallystick.report.table import Column, Table, draw

if TYPE_CHECKING:
    from tallystick.answers.formula import Formula
    from tallystick.answers.ties import Ties
    from tallystick.live.survive import Survival


def show_count(ledger: Ledger, out: Console, *, by: str = "role", style: str = "table") -> None:
    """The count: the number first, then where it goes, then what is shared and what to know."""
    table = _breakdown(ledger, by, machine=style == "csv")
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
        "by_name": "counting every name",
        "parameters": "in distinct Parameter objects",
        "trainable": "trainable",
        "active": "active for one token",
        "stored": "elements stored",
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


def _breakdown(ledger: Ledger, by: str, *, machine: bool) -> Table:
    rows = ledger.rows(by)
    if machine:
        columns = [Column(name) for name in rows[0]] if rows else [Column(by)]
        return Table(columns, [[_cell(value) for value in row.values()] for row in rows])
    shares = [row["share"] for row in rows]
    if by == "tensor":
        columns = [Column("tensor"), Column("shape", True), Column("role"), Column("dtype"), Column("parameters", True)]
        cells = [
            [row["tensor"], " × ".join(map(str, row["shape"])), row["role"], row["dtype"], _shared(row)] for row in rows
        ]
        return Table(columns, cells, shares, ["total", "", "", "", exact(ledger.total)])
    columns = [Column(by), Column("parameters", True), Column("share", True)]
    cells = [[row[by], exact(row["parameters"]), percent(row["share"])] for row in rows]
    total = ["total", exact(ledger.total), percent(1.0 if ledger.total else 0.0)]
    if by == "dtype":
        columns.append(Column("bytes", True))
        cells = [[*cell, in_bytes(row["bytes"])] for cell, row in zip(cells, rows, strict=True)]
        total.append(in_bytes(sum(row["bytes"] for row in rows)))
    return Table(columns, cells, shares, total)


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


def show_formula(formula: Formula, out: Console, *, steps: bool = False, latex: bool = False) -> None:
    """The closed form; with `steps` every product with its numbers; with `latex` for a paper."""
    if latex:
        out.print(Text(formula.latex))
        return
    out.print(Text(f"{formula.source}: {exact(formula.value)} parameters", style="bold"))
    out.print(Text(f"  = {formula.text}"))
    if formula.symbols:
        out.print(Text("where " + ", ".join(f"{key} = {exact(value)}" for key, value in formula.symbols.items())))
    if steps:
        columns = [
            Column("role"),
            Column("tensor"),
            Column("product"),
            Column("in numbers"),
            Column("parameters", True),
        ]
        rows = [
            [step.role, step.what, step.expression.replace("*", "·"), step.substituted, exact(step.value)]
            for step in formula.steps
        ]
        draw(Table(columns, rows, total=["total", "", "", "", exact(formula.value)]), out)
    for note in formula.notes:
        out.print(Text(f"note: {note}", style="dim"))


def show_ties(answer: Ties, out: Console, *, style: str = "table") -> None:
    """The verdict, each group with its relation, then what is wrong and how to mend it."""
    machine = style == "csv"
    number = str if machine else exact
    meant = {True: "yes", False: "no", None: ""}
    cells = [
        [group.relation, ", ".join(group.names), meant[group.expected], number(group.parameters)]
        for group in answer.groups
    ]
    table = Table([Column("relation"), Column("names"), Column("meant"), Column("parameters", True)], cells)
    if machine:
        draw(table, out, style=style)
        return
    colour = {"consistent": "bold green", "contradiction": "bold red"}.get(answer.verdict, "bold yellow")
    out.print(Text(f"{answer.source}: {answer.verdict}", style=colour))
    out.print()
    if cells:
        draw(table, out, style=style)
        out.print()
    lead = "- " if style == "markdown" else "  "
    for problem in answer.problems:
        out.print(Text(f"{lead}{problem.code}: {problem.message}", style="red"))
        out.print(Text(f"{lead}to mend it: {problem.remedy}"))
    if not answer.groups:
        out.print(Text(f"{lead}nothing is shared, and nothing was meant to be", style="dim"))


SURVIVAL_PAGE = """\
# Which operations keep a tie

Written by `make survival`; a test runs all of it again and fails where a cell differs. Each operation is done by the real library, on a GPT-2 of two
layers whose head is its embedding.

- **relation**: of embedding and head, afterwards; before, it is tied. The words are those of the [README](../README.md#what-the-words-mean); *copied* is
  equal values in separate memory, *untied* different ones.
- **parameters**: unique ones, more or fewer than before.
- **embedding**: whether its values are what they were. Where a tie was kept and something was done to the head alone, *other* says that it
  was done to the embedding as well.
- **gradients**: which tensors one backward through both uses reaches. *One tensor*: it gets the sum of the two. *Frozen*: neither is trained.
  *No values*: on the meta device.
- **problem**: its code, explained in [problems](problems/README.md).
"""


def show_survival(answer: Survival, out: Console, *, style: str = "table") -> None:
    """What each operation did to embedding and head, how to mend it, and what the libraries said."""
    markdown = style == "markdown"
    made_with = ", ".join(f"{library} {number}" for library, number in answer.versions.items())
    if markdown:
        out.print(Text(SURVIVAL_PAGE))
    out.print(Text(f"Made with {made_with}."))
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
