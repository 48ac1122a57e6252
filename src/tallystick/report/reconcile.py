"""Print how a claimed count compares with a model's count."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.reconcile.reconcile import Explanation, Reconciliation
from tallystick.report.numbers import exact
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

START = "every tensor counted once"


def show_reconciliation(answer: Reconciliation, out: Console, *, style: str = "table") -> None:
    """Print the answer in one sentence, then each explanation; CSV has one row per step."""
    if style == "csv":
        columns = ["explanation", "convention", "what", "parameters", "value", "residual"]
        rows = [
            [str(place), name, what, str(parameters), str(one.value), str(one.residual)]
            for place, one in enumerate(answer.explanations, 1)
            for name, what, parameters in (
                ("unique", START, answer.actual),
                *((step.convention, step.what, step.parameters) for step in one.steps),
            )
        ]
        draw(Table([Column(name) for name in columns], rows), out, style=style)
        return
    colour = "bold green" if answer.explained else "bold yellow"
    out.print(Text(answer.answer, style=colour))
    for explanation in answer.explanations:
        if explanation.steps:
            out.print()
            draw(_sum(answer, explanation), out, style=style)


def _sum(answer: Reconciliation, explanation: Explanation) -> Table:
    rows = [[START, exact(answer.actual), ""]]
    rows += [[step.what, f"{step.parameters:+,}", "; ".join(step.by)] for step in explanation.steps]
    columns = [Column("counted"), Column("parameters", True), Column("used by")]
    ranges = answer.low < answer.high
    if explanation.residual:
        words = "not explained: at least" if ranges else "not explained"
        rows.append([words, f"{explanation.residual:+,}", ""])
    if explanation.residual and ranges:  # the claim is a range, not one number
        return Table(columns, rows)
    words = f"rounds to {answer.claim}" if ranges else "the claim"
    return Table(columns, rows, total=[words, exact(explanation.value + explanation.residual), ""])
