"""Print the difference of two models."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from tallystick.answers.compare.causes import Cause
from tallystick.answers.compare.compare import Comparison, Row
from tallystick.report.numbers import in_bytes
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_compare(answer: Comparison, out: Console, *, tensors: bool = False, style: str = "table") -> None:
    """Print the one-sentence answer, the causes, and how tensors were matched.

    Args:
        answer: the comparison.
        out: where to print.
        tensors: whether to print the tensors that differ.
        style: as for `draw`.
    """
    if style == "csv":
        draw(_tensors(answer, str) if tensors else _causes(answer), out, style=style)
        return
    out.print(Text(answer.sentence, style="bold"))
    lead = "- " if style == "markdown" else "  "
    if answer.causes:
        out.print()
    if style == "notebook":
        draw(_sum(answer), out, style=style)
    for cause in answer.causes if style != "notebook" else ():
        out.print(Text(lead + _line(cause), style="red" if cause.cause == "tie-lost" else ""))
    out.print()
    if tensors and answer.tensors:
        draw(_tensors(answer, _signed), out, style=style)
        out.print()
    for how in answer.aligned:
        out.print(Text(f"{lead}method: {how}", style="dim"))
    if answer.bytes_a != answer.bytes_b:
        out.print(Text(f"{lead}bytes: {in_bytes(answer.bytes_a)} → {in_bytes(answer.bytes_b)}", style="dim"))


def _line(cause: Cause) -> str:
    """Return `lm_head.weight is no longer tied to wte.weight: +38,597,376` and the keys."""
    unnamed = [key for key in cause.keys if key not in cause.what]
    return f"{cause.what}: {_signed(cause.parameters)}" + (f" ({', '.join(unnamed)})" if unnamed else "")


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


def _sum(answer: Comparison) -> Table:
    """Return the causes with the gap as their total."""
    rows = [[cause.what, _signed(cause.parameters), ", ".join(cause.keys)] for cause in answer.causes]
    columns = [Column("cause"), Column("parameters", True), Column("config keys")]
    table = Table(columns, rows, total=["total", _signed(answer.gap), ""])
    return table if any(cause.keys for cause in answer.causes) else table.only("cause", "parameters")


def _causes(answer: Comparison) -> Table:
    columns = [Column("cause"), Column("what"), Column("parameters", True), Column("names"), Column("keys")]
    rows = [
        [cause.cause, cause.what, str(cause.parameters), " ".join(cause.names), " ".join(cause.keys)]
        for cause in answer.causes
    ]
    return Table(columns, rows)


def _tensors(answer: Comparison, number: Callable[[int], str]) -> Table:
    columns = [
        Column("a"),
        Column("b"),
        Column("shape in A", True),
        Column("shape in B", True),
        Column("parameters", True),
    ]
    return Table(columns, [_cells(row, number) for row in answer.tensors])


def _cells(row: Row, number: Callable[[int], str]) -> list[str]:
    shapes = ["" if shape is None else " × ".join(map(str, shape)) for shape in (row.shape_a, row.shape_b)]
    return [row.name_a or "", row.name_b or "", *shapes, number(row.parameters)]
