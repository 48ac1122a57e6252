"""Print on which devices an engine starts, and how many tokens and requests it then holds."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from tallystick.answers.serve.everywhere import FitEngine, OnDevice
from tallystick.report.numbers import exact, giga
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw


def show_fit_engine(answer: FitEngine, out: Console, *, style: str = "table") -> None:
    """Print one row per device: whether the engine starts, its pool, and a bound on its speed.

    Args:
        answer: the plans.
        out: where to print.
        style: as for `draw`.
    """
    if style == "csv":
        rows = [asdict(one) for one in answer.devices]
        table = [["" if value is None else str(value) for value in row.values()] for row in rows]
        draw(Table([Column(name) for name in rows[0]], table), out, style=style)
        return
    lead = "- " if style == "markdown" else "  "
    name = f"{answer.engine} {answer.engine_version}".strip()
    out.print(Text(f"{answer.source}: {name} on each device", style="bold"))
    out.print()
    length = exact(answer.max_model_len)
    out.print(Text(f"{lead}requests: of {length} tokens at the same time, in the KV cache"))
    out.print(Text(f"{lead}at most: a bound on tokens/s of one request; no run is faster"))
    out.print()
    asked = any(one.requests is not None for one in answer.devices)
    tokens = sum(int(answer.options.get(name) or 0) for name in ("input_tokens", "output_tokens"))
    layers = any(one.gpu_layers is not None for one in answer.devices)
    columns = [
        Column("device"),
        Column("GB", True),
        Column("starts"),
        *([Column("layers", True), Column("host GB", True)] if layers else []),
        Column("KV cache tokens", True),
        Column("requests", True),
        *([Column(f"of {exact(tokens)} tokens", True)] if asked else []),
        Column("at most", True),
    ]
    draw(Table(columns, [_row(one, asked=asked, layers=layers) for one in answer.devices]), out, style=style)
    out.print()
    hint = f"tallystick serve {answer.source} --engine {answer.engine} --device NAME"
    out.print(Text(f"{lead}one device in detail: {hint}", style="dim"))
    for note in answer.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _row(one: OnDevice, *, asked: bool, layers: bool) -> list[str]:
    cells = [one.device, giga(one.memory), "yes" if one.starts else "no" if one.tp is None else f"with --tp {one.tp}"]
    if one.tp is None:
        return [*cells, *([""] * (3 + 2 * layers + asked))]
    speed = "" if one.tokens_per_second is None else f"{one.tokens_per_second:,.0f}"
    requests = [exact(one.requests or 0)] if asked else []
    if layers:
        cells += [str(one.gpu_layers), giga(one.host_bytes)]
    return [*cells, exact(one.kv_cache_tokens), f"{one.max_concurrency:,.1f}", *requests, speed]
