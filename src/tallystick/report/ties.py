"""Print ties and the verdict on them."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.ties.ties import Ties
from tallystick.report.numbers import exact
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

_OPEN = "nothing says whether they should be tied"


def show_ties(answer: Ties, out: Console, *, style: str = "table") -> None:
    """Print the verdict, each group with its relation, then the problems with their remedies."""
    machine = style == "csv"
    number = str if machine else exact
    meant = {True: "yes", False: "no", None: ""}
    cells = [
        [group.relation, ", ".join(group.names), meant[group.expected], number(group.parameters)]
        for group in answer.groups
    ]
    table = Table([Column("relation"), Column("names"), Column("expected"), Column("parameters", True)], cells)
    if machine:
        draw(table, out, style=style)
        return
    colour = {"consistent": "bold green", "contradiction": "bold red", "lost": "bold red"}.get(
        answer.verdict, "bold yellow"
    )
    out.print(Text(f"{answer.source}: {answer.verdict}", style=colour))
    out.print()
    if cells:
        draw(table, out, style=style)
        out.print()
    lead = "- " if style == "markdown" else "  "
    for problem in answer.problems:
        out.print(Text(f"{lead}{problem.code}: {problem.message}", style="red"))
        out.print(Text(f"{lead}fix: {problem.remedy}"))
    told = {problem.names for problem in answer.problems}  # whose problems already say why
    for group in answer.groups:
        open_ = group.expected is None and group.relation in ("untied", "unknown")
        words = [*([group.why] if group.why else []), *([_OPEN] if open_ else [])]
        if words and group.names not in told:
            out.print(Text(f"{lead}{group.relation}, {' and '.join(group.names)}: {'; '.join(words)}", style="yellow"))
    for note in answer.notes:
        out.print(Text(f"{lead}{note}", style="yellow"))
    if not answer.groups and not answer.notes:
        out.print(Text(f"{lead}no tied weights, and none expected", style="dim"))
