"""Print memory needed for inference or training, and whether it fits on a device."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.devices import Device
from tallystick.answers.fit import Fit
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.memory import Memory
from tallystick.answers.memory.sweep import Sweep
from tallystick.report.cells import Column, Table
from tallystick.report.numbers import exact, giga, in_giga, percent
from tallystick.report.table import draw


def show_memory(answer: Memory, out: Console, *, explain: bool = False, style: str = "table") -> None:
    """Print the peak memory, its parts, each moment, and the notes.

    Args:
        answer: the memory answer.
        out: where to print.
        explain: whether to print each part's formula and source.
        style: as for `draw`.
    """
    if style == "csv":
        columns = [Column(name) for name in ("part", "what", "bytes", "formula", "source")]
        rows = [[line.part, line.what, str(line.bytes), line.formula, line.source] for line in answer.lines]
        draw(Table(columns, rows), out, style=style)
        return
    lead = "- " if style == "markdown" else "  "
    peak = answer.peak
    out.print(Text(f"{answer.source}: {answer.mode} needs {in_giga(peak.bytes)}", style="bold"))
    out.print()
    out.print(Text(f"{lead}batch {exact(answer.batch)}, sequence {exact(answer.sequence)}; peak: {peak.phase}"))
    if answer.per_token is not None:
        out.print(Text(f"{lead}KV cache: {exact(answer.per_token)} bytes per token"))
    if answer.device is not None:
        verdict, style_of = ("fits", "green") if answer.fits else ("does not fit", "red")
        share = percent(peak.bytes / answer.device.room)
        out.print(
            Text(f"{lead}{verdict} {answer.device.name}: {share} of {in_giga(answer.device.room)}", style=style_of)
        )
        _show_room(answer.device, out, lead)
    out.print()
    draw(_sizes("part", [(line.label, line.bytes) for line in answer.lines]), out, style=style)
    out.print()
    draw(_sizes("at", [(phase.phase, phase.bytes) for phase in answer.phases]), out, style=style)
    out.print()
    for line in answer.lines if explain else ():
        out.print(Text(f"{lead}{line.label} = {line.formula}{_from(line)}"))
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def show_sweep(answer: Sweep, out: Console, *, style: str = "table") -> None:
    """Print one row per sequence length: the parts at its peak, and their sum."""
    machine = style == "csv"
    number = str if machine else in_giga
    parts = answer.parts
    columns = [Column(name, True) for name in ("sequence", *(part.replace("_", " ") for part in parts), "total")]
    if answer.answers[0].device is not None:
        columns.append(Column(f"fits {answer.answers[0].device.name}"))
    rows = [
        [
            str(one.sequence) if machine else exact(one.sequence),
            *(number(sizes[place]) for sizes in parts.values()),
            number(one.total),
            *([] if one.fits is None else ["yes" if one.fits else "no"]),
        ]
        for place, one in enumerate(answer.answers)
    ]
    table = Table(columns, rows)
    if not machine:
        out.print(Text(f"{answer.source}: {answer.mode}, batch {answer.answers[0].batch}", style="bold"))
        out.print()
    draw(table if machine else table._replace(narrower=[_sweep_in_gigabytes(answer)]), out, style=style)
    for note in () if machine else dict.fromkeys(note for one in answer.answers for note in one.notes):
        out.print(Text(f"{'- ' if style == 'markdown' else '  '}note: {note}", style="dim"))


def _sweep_in_gigabytes(answer: Sweep) -> Table:
    """Return the sweep in GB alone, without the parts that are 0.000 in each row."""
    parts = {
        f"{part.replace('_', ' ')} GB": [giga(size, places=3) for size in sizes] for part, sizes in answer.parts.items()
    }
    parts = {name: cells for name, cells in parts.items() if any(cell != "0.000" for cell in cells)}
    parts["total GB"] = [giga(one.total, places=3) for one in answer.answers]
    columns = [Column(name, True) for name in ("sequence", *parts)]
    rows = [
        [exact(one.sequence), *(cells[place] for cells in parts.values())] for place, one in enumerate(answer.answers)
    ]
    if answer.answers[0].device is not None:
        columns.append(Column(f"fits {answer.answers[0].device.name}"))
        rows = [[*row, "yes" if one.fits else "no"] for row, one in zip(rows, answer.answers, strict=True)]
    return Table(columns, rows)


def _sizes(what: str, sizes: list[tuple[str, int]]) -> Table:
    columns = [Column(what), Column("bytes", True), Column("GB", True), Column("GiB", True)]
    places = 1 if max(size for _, size in sizes) >= 10**12 else 3
    cells = [
        [name, exact(size), giga(size, places=places), giga(size, binary=True, places=places)] for name, size in sizes
    ]
    table = Table(columns, cells)
    return table._replace(narrower=[table.only(what, "bytes", "GB"), table.only(what, "bytes")])


def _from(line: Line) -> str:
    return f"  ({line.source})" if line.source else ""


def show_fit(answer: Fit, out: Console, *, style: str = "table") -> None:
    """Print whether a model fits, the largest values that fit, and the changes that make it fit."""
    asked, device = answer.asked, answer.device
    lead = "- " if style == "markdown" else "  "
    verdict = "fits" if answer.fits else "does not fit"
    out.print(
        Text(f"{asked.source}: {asked.mode} {verdict} {device.name}", style="bold green" if answer.fits else "bold red")
    )
    out.print()
    share = percent(asked.total / device.room)
    out.print(Text(f"{lead}needs {in_giga(asked.total)} of {in_giga(device.room)}: {share}, peak: {asked.peak.phase}"))
    _show_room(device, out, lead)
    rows = [
        [f"largest batch, at a sequence of {exact(asked.sequence)}", _most(answer.batch)],
        [f"longest sequence, at a batch of {exact(asked.batch)}", _most(answer.sequence)],
        ["highest-precision weights", answer.dtype or "none"],
    ]
    out.print()
    draw(Table([Column("what fits"), Column("at most", True)], rows), out, style=style)
    out.print()
    if answer.changed is not None:
        out.print(Text(f"{lead}to make it fit ({in_giga(answer.changed.total)}):"))
        for change in answer.changes:
            out.print(Text(f"{lead}  {change}"))
    elif not answer.fits:
        out.print(Text(f"{lead}no option makes it fit on one device", style="red"))
    if answer.spread is not None:
        ways = " ".join(f"--{name} {number}" for name, number in answer.spread.options.items())
        out.print(
            Text(f"{lead}fits on {answer.spread.ranks:,} devices: {ways}, {in_giga(answer.spread.bytes)} on each")
        )
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _show_room(device: Device, out: Console, lead: str) -> None:
    """Print whose figure a device's memory is, and how much of it the CUDA context takes."""
    if device.memory_by:
        said = f"{device.name} has {in_giga(device.memory)} according to {device.memory_by}"
        kept = f", minus {in_giga(device.context)} for the CUDA context" if device.context else ""
        out.print(Text(lead + said + kept, style="dim"))


def _most(number: int | None) -> str:
    return "no limit" if number is None else exact(number) if number else "none"
