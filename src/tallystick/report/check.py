"""Print a checked derivation: verdict, marked lines, and the steps to the model's total."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.check.check import Check
from tallystick.answers.check.claims import Equation
from tallystick.answers.reconcile.conventions import listed
from tallystick.report.derivation.margin import show_lines
from tallystick.report.derivation.marks import correction, shown, written
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

WIDEST = 64  # characters of a text line in a table


def show_check(answer: Check, out: Console, *, style: str = "table") -> None:
    """Print the verdict, the text's lines with marks, and the steps from its total to the model's.

    In ``markdown`` the lines are a table; in ``html`` `marked_text` draws them instead.

    Args:
        answer: the checked derivation.
        out: where to print.
        style: as for `draw`.
    """
    if style == "csv":
        draw(_equations(answer), out, style=style)
        return
    out.print(Text(f"{answer.source}: {_sentence(answer)}", style="bold green" if answer.correct else "bold red"))
    if style == "table":
        show_lines(answer, out)
    elif style in ("markdown", "notebook") and answer.equations:
        out.print()
        draw(_equations(answer), out, style=style)
    if answer.total_true is not None and answer.total_claimed is not None:
        out.print()
        draw(_sum(answer), out, style=style)
    if style in ("markdown", "notebook"):
        _list_unread(answer, out)


def _list_unread(answer: Check, out: Console) -> None:
    if answer.unread:
        out.print()
    for unread in answer.unread:
        why = f" ({unread.why})" if unread.why else ""
        out.print(Text(f"- not judged, line {unread.line}: {_cut(unread.text)}{why}"))


def _sentence(answer: Check) -> str:
    count = len(answer.equations)
    wrong = sum(not equation.correct for equation in answer.equations)
    if wrong == count == 1:
        said = "its equation is wrong"
    elif wrong:
        said = f"{wrong} of {count} equations {'is' if wrong == 1 else 'are'} wrong"
    elif count:
        said = f"all {count} equations are right" if count > 1 else "its equation is right"
    else:
        said = "it has no equation to judge"
    if answer.several_totals:
        lines = listed([str(line) for line in answer.several_totals])
        return (
            f"{said}; its totals on lines {lines} are of different models: give each part of the text its own --against"
        )
    if answer.against is None:
        return said
    if answer.total_claimed is None or answer.total_true is None:
        return f"{said}; it states no total"
    gap = answer.total_true - answer.total_claimed - answer.rounding
    if gap:
        corrected = "with its arithmetic corrected it is" if answer.arithmetic else "it is"
        counted = f": {corrected} {answer.against} {answer.convention}" if answer.convention else ""
        off = f"{written(abs(gap))} {'less' if gap > 0 else 'more'} than {answer.against}'s"
        return f"{said}; its total is {off}{counted}"
    return f"{said}; its total matches {answer.against}"


def _equations(answer: Check) -> Table:
    """Return one row for each wrong equation, and one for each correct chain."""
    rows: list[list[str]] = []
    chain = (0, "")
    for equation in answer.equations:
        row = [
            str(equation.line),
            _cut(equation.plain),
            _verdict(equation),
            _in_model(equation),
        ]
        if equation.correct and chain == (equation.line, equation.text) and rows[-1][2] == "right":
            rows.pop()
        rows.append(row)
        chain = (equation.line, equation.text)
    columns = [Column("line", True), Column("equation"), Column("verdict"), Column("in the model")]
    if answer.against is None:
        return Table(columns[:-1], [row[:-1] for row in rows])
    return Table(columns, rows)


def _in_model(equation: Equation) -> str:
    """Return what the number is in the model, and what the label names if that differs."""
    if equation.matches and equation.label_names:
        return f"{equation.matches}; but {equation.label_names}"
    return equation.matches or equation.label_names or ""


def _verdict(equation: Equation) -> str:
    if equation.should_be is None:
        return f"right given the earlier error ({written(equation.carried, sign='+')})" if equation.carried else "right"
    return f"wrong: {correction(equation)}"


def _sum(answer: Check) -> Table:
    """Return the sum from the text's total to the model's."""
    wrong = list(dict.fromkeys(str(equation.line) for equation in answer.equations if not equation.correct))
    lines = f"line{'s' if len(wrong) > 1 else ''} {', '.join(wrong)}"
    rows = [["the text's total", f"{answer.total_claimed:,}", _line(answer.total_line)]]
    rows += [
        [what, f"{number:+,}", where]
        for what, number, where in (
            ("arithmetic errors", answer.arithmetic, lines),
            ("rounded as written", answer.rounding, ""),
            *(
                (omission.what, omission.parameters, f"{omission.cause}{_at(omission.line)}")
                for omission in answer.omissions
            ),
            ("unexplained", answer.unexplained, ""),
        )
        if number
    ]
    columns = [Column("counted"), Column("parameters", True), Column("why")]
    return Table(columns, rows, total=[str(answer.against), f"{answer.total_true:,}", ""])


def _line(line: int | None) -> str:
    return "" if line is None else f"line {line}"


def _at(line: int | None) -> str:
    return "" if line is None else f", {_line(line)}"


def _cut(text: str) -> str:
    text = shown(text)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
