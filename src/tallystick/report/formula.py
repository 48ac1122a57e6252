"""Print a closed form."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.formula import Formula
from tallystick.report.html.mathml import typeset
from tallystick.report.numbers import exact
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_formula(
    formula: Formula,
    out: Console,
    *,
    steps: bool = False,
    latex: bool = False,
    by: str = "tensor",
    style: str = "table",
) -> None:
    """Print the closed form.

    Args:
        formula: the formula.
        out: where to print.
        steps: whether to print every product with its numbers.
        latex: whether to print only LaTeX.
        by: how the steps are added up: by tensor, or by block with subtotals.
        style: as for `draw`.
    """
    if style == "csv" and by == "block":
        _sections_as_rows(formula, out)
        return
    if style == "csv":
        fields = ("role", "what", "expression", "substituted", "value")
        rows = [[str(getattr(step, name)) for name in fields] for step in formula.steps]
        draw(Table([Column(name) for name in fields], rows), out, style=style)
        return
    if latex:
        for line in _derivation(formula, by) if steps else [formula.latex]:
            out.print(Text(line))
        return
    out.print(Text(f"{formula.source}: {exact(formula.value)} parameters", style="bold"))
    if style == "notebook":
        out.file.write(f'<div style="margin:8px 0;overflow:auto">{typeset(formula.expression)}</div>')
    elif style != "html":  # a page typesets it
        out.print(Text(f"  = {formula.text}"))
    if formula.symbols:
        out.print(Text("where " + ", ".join(f"{key} = {exact(value)}" for key, value in formula.symbols.items())))
    if steps and by == "block":
        _by_block(formula, out, style)
    elif steps:
        _by_tensor(formula, out, style)
    for note in formula.notes:
        out.print(Text(f"note: {note}", style="dim"))


def _by_tensor(formula: Formula, out: Console, style: str) -> None:
    columns = [Column("role"), Column("tensor"), Column("product"), Column("in numbers"), Column("parameters", True)]
    rows = [
        [step.role, step.what, step.expression.replace("*", "·"), step.substituted, exact(step.value)]
        for step in formula.steps
    ]
    table = Table(columns, rows, total=["total", "", "", "", exact(formula.value)])
    names = [step.what.partition(" ")[0] for step in formula.steps]
    draw(table._replace(parts=[step.role for step in formula.steps], tensors=names), out, style=style)
    for block in formula.blocks:
        if block.layers > 1:
            whole = f"{exact(block.layers)} = {exact(block.layers * block.parameters)}"
            out.print(Text(f"one block of {block.block.replace('-', '–')}: {exact(block.parameters)} × {whole}"))


def _by_block(formula: Formula, out: Console, style: str) -> None:
    """Print the steps of one layer of each stack, their sum, and that times the layers."""
    columns = [
        Column("tensor"),
        Column("product"),
        Column("in numbers"),
        Column("of one", True),
        Column("in all", True),
    ]
    rows = []
    for part in formula.sections:
        alone = part.layers == 1 and len(part.steps) == 1
        for step in part.steps:
            row = [step.what, step.expression.replace("*", "·"), step.substituted, exact(step.value)]
            rows.append([*row, exact(part.total) if alone else ""])
        if not alone:
            name = part.part.replace("-", "–")
            sums = [f"sum of {name}", "", ""]
            if part.layers > 1:
                sums = [
                    f"sum of one of {name}",
                    f"{part.repeats} · sum",
                    f"{exact(part.layers)} × {exact(part.parameters)}",
                ]
            rows.append([*sums, exact(part.parameters), exact(part.total)])
    draw(Table(columns, rows, total=["total", "", "", "", exact(formula.value)]), out, style=style)


def _sections_as_rows(formula: Formula, out: Console) -> None:
    fields = ("role", "what", "expression", "substituted", "value")
    rows = [
        [part.part, str(part.layers), *(str(getattr(step, name)) for name in fields)]
        for part in formula.sections
        for step in part.steps
    ]
    draw(Table([Column(name) for name in ("part", "layers", *fields)], rows), out, style="csv")


def _derivation(formula: Formula, by: str) -> list[str]:
    """Return the lines of an aligned environment of LaTeX with the steps."""
    if by == "block":
        lines = []
        for part in formula.sections:
            lines += [_line(step.what, step.latex) for step in part.steps]
            if part.layers > 1:
                one, of_all = (f"{number:,}".replace(",", "{,}") for number in (part.parameters, part.total))
                lines.append(_line(f"one of {part.part}", part.latex))
                lines.append(_line(f"all of {part.part}", rf"{part.layers} \times {one} = {of_all}"))
    else:
        lines = [_line(step.what, step.latex) for step in formula.steps]
    total = f"{formula.value:,}".replace(",", "{,}")
    lines.append(_line("total", f"{formula.latex} = {total}"))
    return [r"\begin{aligned}", *(rf"{line} \\" for line in lines[:-1]), lines[-1], r"\end{aligned}"]


def _line(label: str, equation: str) -> str:
    escaped = label.replace("_", r"\_")
    return rf"\text{{{escaped}}} &: {equation}"
