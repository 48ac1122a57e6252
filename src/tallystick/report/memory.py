"""Print memory needed for inference or training, and whether it fits on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from tallystick.answers.devices import Device
from tallystick.answers.memory.answer import Memory
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.sweep import Sweep
from tallystick.report.numbers import exact, giga, in_giga, percent
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw
from tallystick.report.tables.usage import show_usage


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
    out.print(Text(f"{answer.source}: {answer.mode} needs {in_giga(answer.total_bytes)}", style="bold"))
    out.print()
    out.print(Text(f"{lead}batch {exact(answer.batch)}, sequence {exact(answer.sequence)}; peak: {answer.peak}"))
    if answer.kv_cache_bytes_per_token is not None:
        out.print(Text(f"{lead}KV cache: {exact(answer.kv_cache_bytes_per_token)} bytes per token"))
    if answer.largest_layer is not None:
        largest = answer.largest_layer
        out.print(Text(f"{lead}largest layer: {largest.name}, {in_giga(largest.bytes)}"))
    if answer.device is not None:
        verdict, style_of = ("fits", "green") if answer.fits else ("does not fit", "red")
        share = percent(answer.total_bytes / answer.device.room)
        out.print(
            Text(f"{lead}{verdict} {answer.device.name}: {share} of {in_giga(answer.device.room)}", style=style_of)
        )
        show_usage(answer.total_bytes, answer.device.room, out)
        show_room(answer.device, out, lead)
    out.print()
    total = [(f"peak: {answer.peak}", answer.total_bytes)] if style == "notebook" else []
    parts = _sizes("part", [(line.label, line.bytes) for line in answer.lines], total)
    draw(_linked(parts, answer) if style == "html" else parts, out, style=style)
    out.print()
    draw(_sizes("at", [(phase.phase, phase.bytes) for phase in answer.phases]), out, style=style)
    out.print()
    for line in answer.lines if explain else ():
        out.print(Text(f"{lead}{line.label} = {line.formula}{_from(line)}"))
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _linked(table: Table, answer: Memory) -> Table:
    """Return the table with the role of each line, by which a page links it."""
    from tallystick.answers.memory.by_role import role_of

    return table._replace(parts=[role_of(line) for line in answer.lines])


def show_sweep(answer: Sweep, out: Console, *, style: str = "table") -> None:
    """Print one row per sequence length or dtype: the parts at its peak, and their sum."""
    machine = style == "csv"
    first = answer.answers[0]
    if not machine:
        at = f", sequence {exact(first.sequence)}" if answer.along == "dtype" else ""
        out.print(Text(f"{answer.source}: {answer.mode}, batch {first.batch}{at}", style="bold"))
        out.print()
    number = str if machine else in_giga
    sizes = {part: list(map(number, found)) for part, found in _sizes_of(answer).items()}
    table = _sweep_in_gigabytes(answer) if style == "notebook" else _sweep(answer, sizes, plain=machine)
    draw(table if machine else table._replace(narrower=[_sweep_in_gigabytes(answer)]), out, style=style)
    for note in () if machine else dict.fromkeys(note for one in answer.answers for note in one.notes):
        out.print(Text(f"{'- ' if style == 'markdown' else '  '}note: {note}", style="dim"))


def _sizes_of(answer: Sweep) -> dict[str, list[int]]:
    """Return the bytes of each column: the parts, their total, the largest layer."""
    sizes = {part.replace("_", " "): list(found) for part, found in answer.parts_at_peak.items()}
    sizes["total"] = [one.total_bytes for one in answer.answers]
    layers = [one.largest_layer.bytes for one in answer.answers if one.largest_layer]
    return sizes | ({"largest layer": layers} if answer.along == "dtype" and layers else {})


def _sweep(answer: Sweep, cells: Mapping[str, Sequence[str]], *, plain: bool = False) -> Table:
    """Return one row per answer, with a column for each kind of bytes."""
    by_dtype = answer.along == "dtype"
    columns = [Column(answer.along, not by_dtype), *(Column(name, True) for name in cells)]
    firsts = [
        str(one.dtype) if by_dtype else str(one.sequence) if plain else exact(one.sequence) for one in answer.answers
    ]
    rows = [[first, *(found[place] for found in cells.values())] for place, first in enumerate(firsts)]
    if answer.answers[0].device is not None:
        columns.append(Column(f"fits {answer.answers[0].device.name}"))
        rows = [[*row, "yes" if one.fits else "no"] for row, one in zip(rows, answer.answers, strict=True)]
    return Table(columns, rows)


def _sweep_in_gigabytes(answer: Sweep) -> Table:
    """Return the table in GB alone, without parts that are 0.000 in each row."""
    cells = {f"{name} GB": [giga(size, places=3) for size in sizes] for name, sizes in _sizes_of(answer).items()}
    shown = {name: found for name, found in cells.items() if any(cell != "0.000" for cell in found)}
    return _sweep(answer, shown)


def _sizes(what: str, sizes: Sequence[tuple[str, int]], total: Sequence[tuple[str, int]] = ()) -> Table:
    columns = [Column(what), Column("bytes", True), Column("GB", True), Column("GiB", True)]
    places = 1 if max(size for _, size in sizes) >= 10**12 else 3
    cells = [
        [name, exact(size), giga(size, places=places), giga(size, binary=True, places=places)]
        for name, size in (*sizes, *total)
    ]
    table = Table(columns, cells[: len(sizes)], total=cells[-1] if total else ())
    return table._replace(narrower=[table.only(what, "bytes", "GB"), table.only(what, "bytes")])


def _from(line: Line) -> str:
    return f"  ({line.source})" if line.source else ""


def show_room(device: Device, out: Console, lead: str) -> None:
    """Print whose figure a device's memory is, and how much of it the CUDA context takes."""
    if device.memory_by:
        said = f"{device.name} has {in_giga(device.memory)} according to {device.memory_by}"
        kept = f", minus {in_giga(device.context)} for the CUDA context" if device.context else ""
        out.print(Text(lead + said + kept, style="dim"))
