"""A derivation judged, as people read it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.check import Check, Equation
from tallystick.report.table import Column, Table, draw

WIDEST = 72  # characters of a line of the text


def show_check(answer: Check, out: Console, *, style: str = "table") -> None:
    """The verdict in a sentence, each equation, and how the text's total becomes the model's."""
    out.print(Text(f"{answer.source}: {_sentence(answer)}", style="bold green" if answer.correct else "bold red"))
    out.print()
    rows = [
        [str(equation.line), _cut(equation.text), _verdict(equation), equation.matches or ""]
        for equation in answer.equations
    ]
    columns = [Column("line", True), Column("equation"), Column("verdict"), Column("in the model")]
    draw(
        Table(
            columns if answer.against else columns[:-1], [row[: len(columns) - (not answer.against)] for row in rows]
        ),
        out,
        style=style,
    )
    if answer.total_claimed is not None and answer.total_true is not None:
        out.print()
        lines = [[_written(answer.total_claimed), f"the text's total, line {answer.total_line}"]]
        lines += [
            [_signed(number), words]
            for number, words in (
                (answer.arithmetic, "arithmetic"),
                (answer.rounding, "rounded as written"),
            )
            if number
        ]
        lines += [
            [_signed(omission.parameters), f"{omission.what}: {omission.cause}{_at(omission.line)}"]
            for omission in answer.omissions
        ]
        if answer.unexplained:
            lines.append([_signed(answer.unexplained), "unexplained"])
        draw(
            Table(
                [Column("parameters", True), Column("")],
                lines,
                total=[_written(answer.total_true), str(answer.against)],
            ),
            out,
            style=style,
        )
    lead = "- " if style == "markdown" else "  "
    if answer.unread:
        out.print()
    for unread in answer.unread:
        out.print(Text(f"{lead}not judged, line {unread.line}: {_cut(unread.text)}", style="dim"))


def _sentence(answer: Check) -> str:
    count = len(answer.equations)
    wrong = sum(not equation.correct for equation in answer.equations)
    if wrong:
        first = f"{wrong} of {count} equations {'is' if wrong == 1 else 'are'} wrong"
    else:
        first = (
            "its equation is right"
            if count == 1
            else f"all {count} equations are right"
            if count
            else "it has no equation to judge"
        )
    if answer.total_true is None:
        return first
    if answer.total_claimed is None:
        return f"{first}; it states no total"
    gap = answer.total_true - answer.total_claimed - answer.rounding
    if not gap:
        return f"{first}, and so is the total" if not wrong else f"{first}; the total is that of {answer.against}"
    return f"{first}; its total is {_written(abs(gap))} {'less' if gap > 0 else 'more'} than {answer.against} has"


def _verdict(equation: Equation) -> str:
    if equation.correct:
        if equation.carried:
            return f"right, but carries {_signed(equation.carried)} from above"
        return "right"
    assert equation.should_be is not None  # noqa: S101
    if equation.should_be == equation.right:
        return f"wrong: the left side comes to {_written(equation.left)}"
    return f"wrong: it is {_written(equation.should_be)}, off by {_signed(equation.right - equation.should_be)}"


def _at(line: int | None) -> str:
    return "" if line is None else f", line {line}"


def _written(number: int | float) -> str:
    return f"{number:,}"


def _signed(number: int | float) -> str:
    return f"{number:+,}"


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
