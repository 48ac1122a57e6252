"""Print a closed form."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.formula import Formula
from tallystick.report.cells import Column, Table
from tallystick.report.mathml import typeset
from tallystick.report.numbers import exact
from tallystick.report.table import draw


def show_formula(
    formula: Formula, out: Console, *, steps: bool = False, latex: bool = False, style: str = "table"
) -> None:
    """Print the closed form.

    Args:
        formula: the formula.
        out: where to print.
        steps: whether to print every product with its numbers.
        latex: whether to print only LaTeX.
        style: as for `draw`.
    """
    if style == "csv":
        fields = ("role", "what", "expression", "substituted", "value")
        rows = [[str(getattr(step, name)) for name in fields] for step in formula.steps]
        draw(Table([Column(name) for name in fields], rows), out, style=style)
        return
    if latex:
        out.print(Text(formula.latex))
        return
    out.print(Text(f"{formula.source}: {exact(formula.value)} parameters", style="bold"))
    if style == "notebook":
        out.file.write(f'<div style="margin:8px 0;overflow:auto">{typeset(formula.expression)}</div>')
    else:
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
        draw(Table(columns, rows, total=["total", "", "", "", exact(formula.value)]), out, style=style)
    for block in formula.blocks if steps else ():
        if block.layers > 1:
            whole = f"{exact(block.layers)} = {exact(block.layers * block.parameters)}"
            out.print(Text(f"one block of {block.block.replace('-', '–')}: {exact(block.parameters)} × {whole}"))
    for note in formula.notes:
        out.print(Text(f"note: {note}", style="dim"))
