"""Print the tables of devices and number formats."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from tallystick.answers.devices import Device
from tallystick.answers.memory.number_formats import Format
from tallystick.report.numbers import giga
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_devices(devices: Sequence[Device], out: Console, *, style: str = "table") -> None:
    """Print the devices; memory in GB (10^9 bytes), in CSV in bytes."""
    machine = style == "csv"
    columns = [
        Column("name"),
        Column("bytes" if machine else "GB", True),
        *(Column(name, True) for name in ("TFLOP/s", "GB/s", "watts")),
        Column("source"),
    ]
    rows = [
        [
            one.name,
            str(one.memory) if machine else giga(one.memory),
            _number(one.flops, 1e12),
            _number(one.bandwidth, 1e9),
            _number(one.watts, 1),
            one.source,
        ]
        for one in devices
    ]
    table = Table(columns, rows)
    draw(table._replace(narrower=[table.only("name", "GB", "TFLOP/s", "GB/s", "watts")]), out, style=style)


def show_dtypes(formats: Sequence[Format], out: Console, *, style: str = "table") -> None:
    """Print the number formats with the bits of one element, scales included."""
    columns = [Column("name"), Column("bits", True), Column("weights"), Column("KV cache"), Column("what")]
    rows = [
        [one.name, f"{one.bits:g}", *("yes" if used else "" for used in (one.weights, one.kv_cache)), one.what]
        for one in formats
    ]
    draw(Table(columns, rows), out, style=style)


def _number(value: float | None, unit: float) -> str:
    return "" if value is None else f"{value / unit:,g}"
