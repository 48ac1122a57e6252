"""Print whether a model fits on a device, and on which devices it fits."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.fit import Fit
from tallystick.answers.fit_all import Cell, FitAll
from tallystick.report.memory import show_room
from tallystick.report.numbers import exact, giga, in_giga, percent
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw
from tallystick.report.tables.usage import show_usage

SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def show_fit(answer: Fit, out: Console, *, style: str = "table") -> None:
    """Print whether a model fits, the largest values that fit, and the changes that make it fit."""
    asked, device = answer.asked, answer.device
    if style == "csv":
        draw(_as_row(answer), out, style=style)
        return
    lead = "- " if style == "markdown" else "  "
    verdict = "fits" if answer.fits else "does not fit"
    out.print(
        Text(f"{asked.source}: {asked.mode} {verdict} {device.name}", style="bold green" if answer.fits else "bold red")
    )
    out.print()
    share = percent(asked.total_bytes / device.room)
    out.print(Text(f"{lead}needs {in_giga(asked.total_bytes)} of {in_giga(device.room)}: {share}, peak: {asked.peak}"))
    show_usage(asked.total_bytes, device.room, out)
    show_room(device, out, lead)
    rows = [
        [f"largest batch, at a sequence of {exact(asked.sequence)}", _most(answer.largest_batch)],
        [f"longest sequence, at a batch of {exact(asked.batch)}", _most(answer.longest_sequence)],
        ["highest-precision weights", answer.widest_dtype or "none"],
    ]
    out.print()
    draw(Table([Column("what fits"), Column("at most", True)], rows), out, style=style)
    out.print()
    if answer.changed_bytes is not None:
        out.print(Text(f"{lead}to make it fit ({in_giga(answer.changed_bytes)}): {' '.join(answer.flags)}"))
        for change in answer.changes:
            out.print(Text(f"{lead}  {change}", style="dim"))
    elif not answer.fits:
        out.print(Text(f"{lead}no option makes it fit on one device", style="red"))
    if answer.spread is not None:
        ways = " ".join(f"--{name} {number}" for name, number in answer.spread.options.items())
        out.print(
            Text(f"{lead}fits on {answer.spread.ranks:,} devices: {ways}, {in_giga(answer.spread.bytes)} on each")
        )
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _as_row(answer: Fit) -> Table:
    """Return the answer as one row for a program."""
    row = {
        "device": answer.device.name,
        "memory": answer.device.memory,
        "fits": answer.fits,
        "total_bytes": answer.asked.total_bytes,
        "largest_batch": answer.largest_batch,
        "longest_sequence": answer.longest_sequence,
        "widest_dtype": answer.widest_dtype,
        "flags": " ".join(answer.flags),
    }
    return Table([Column(name) for name in row], [[_plain(value) for value in row.values()]])


def _most(number: int | None) -> str:
    return "no limit" if number is None else exact(number) if number else "none"


def show_fit_all(answer: FitAll, out: Console, *, style: str = "table") -> None:
    """Print one row per device: the largest batch and the longest sequence in each dtype."""
    if style == "csv":
        fields = ("device", "memory", "dtype", "fits", "total_bytes", "largest_batch", "longest_sequence")
        rows = [[_plain(getattr(cell, name)) for name in fields] for cell in answer.devices]
        draw(Table([Column(name) for name in fields], rows), out, style=style)
        return
    lead = "- " if style == "markdown" else "  "
    out.print(Text(f"{answer.source}: {answer.mode} on each device, by dtype of the weights", style="bold"))
    out.print()
    out.print(
        Text(f"{lead}largest batch at {exact(answer.sequence)} tokens / longest sequence at batch {answer.batch}")
    )
    out.print(Text(f"{lead}no: batch {answer.batch} with {exact(answer.sequence)} tokens does not fit"))
    out.print()
    width = len(answer.dtypes)
    rows = []
    for place in range(0, len(answer.devices), width):
        cells = answer.devices[place : place + width]
        rows.append([cells[0].device, giga(cells[0].memory), *map(_limits, cells)])
    columns = [Column("device"), Column("GB", True), *(Column(SHORT.get(name, name), True) for name in answer.dtypes)]
    draw(Table(columns, rows), out, style=style)
    out.print()
    out.print(Text(f"{lead}one device in detail: tallystick fit {answer.source} --device NAME", style="dim"))
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _limits(cell: Cell) -> str:
    return f"{_most(cell.largest_batch)} / {_tokens(cell.longest_sequence)}" if cell.fits else "no"


def _tokens(number: int | None) -> str:
    """Return a length rounded down, as --sequence takes it: 131,072 is 128k."""
    return f"{number // 1024:,}k" if number is not None and number >= 1024 else _most(number)


def _plain(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
