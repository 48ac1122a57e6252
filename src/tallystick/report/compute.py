"""Print the FLOPs of a model and its speed on a device."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.compute.compute import Compute
from tallystick.answers.compute.throughput import Rate
from tallystick.report.numbers import exact, in_flops, percent, rough
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

# The roles whose tensors a part of the FLOPs multiplies, if it has another name.
ROLES_OF = {
    "embedding": "token_embedding position_embedding", "attention_projections": "attention",
    "attention_scores": "attention", "attention_values": "attention",
}  # fmt: skip


def show_compute(compute: Compute, out: Console, *, explain: bool = False, style: str = "table") -> None:
    """Print the FLOPs of a pass, their breakdown, estimates and speed.

    Args:
        compute: the answer.
        out: where to print.
        explain: whether to print each product with its formula and source.
        style: as for `draw`.
    """
    if style == "csv":
        draw(_products(compute), out, style=style)
        return
    bold = "**" if style == "markdown" else ""
    lead = "- " if style == "markdown" else "  "
    size = f"{compute.batch:,} × {compute.sequence:,} tokens" + ("" if compute.complete else " (incomplete, see below)")
    out.print(Text(f"{compute.source}: {bold}{in_flops(compute.forward_flops)}{bold} forward, {size}", style="bold"))
    out.print()
    for line in _totals(compute):
        out.print(Text(lead + line))
    out.print()
    draw(_products(compute) if explain else _parts(compute), out, style=style)
    out.print()
    for one in compute.approximations:
        rule = f"the 6·N rule with N = {rough(one.parameters)}, {one.what},"
        out.print(Text(f"{lead}{rule} gives {percent(one.ratio)} of the exact count"))
    if compute.rate is not None:
        for line in _rate(compute.rate):
            out.print(Text(lead + line))
    if explain:
        for source in dict.fromkeys(product.source for product in compute.lines):
            out.print(Text(f"{lead}source: {source}", style="dim"))
    for note in compute.notes:
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _totals(compute: Compute) -> list[str]:
    lines = [
        f"{exact(compute.forward_flops)} FLOPs forward, {exact(compute.training_flops)} in training",
        f"{in_flops(compute.forward_flops // compute.tokens)} per token forward,"
        f" {in_flops(compute.training_flops // compute.tokens)} in training",
    ]
    if compute.needed_flops != compute.forward_flops:
        lines.append(f"{in_flops(compute.needed_flops)} forward if masked scores are skipped")
    if compute.flash_training_flops != compute.training_flops:
        lines.append(f"{in_flops(compute.flash_training_flops)} in training with a fused attention kernel")
    return lines


def _parts(compute: Compute) -> Table:
    columns = [Column("part"), Column("forward", True), Column("training", True), Column("share", True)]
    parts = compute.parts
    shares = [part["forward_flops"] / compute.forward_flops for part in parts.values()]
    rows = [
        [name.replace("_", " "), in_flops(part["forward_flops"]), in_flops(part["training_flops"]), percent(share)]
        for (name, part), share in zip(parts.items(), shares, strict=True)
    ]
    total = ["total", in_flops(compute.forward_flops), in_flops(compute.training_flops), percent(1.0)]
    return Table(columns, rows, shares, total, parts=[ROLES_OF.get(name, name) for name in parts])


def _products(compute: Compute) -> Table:
    columns = [Column("part"), Column("product"), Column("formula"), Column("forward", True), Column("backward", True)]
    rows = [
        [one.part.replace("_", " "), one.what, one.formula, exact(one.forward_flops), exact(one.backward_flops)]
        for one in compute.lines
    ]
    return Table(columns, rows, total=["total", "", "", exact(compute.forward_flops), exact(compute.backward_flops)])


def _rate(rate: Rate) -> list[str]:
    lines = []
    if rate.device is not None:
        peak = "" if rate.peak_flops is None else f": peak {in_flops(rate.peak_flops)}/s in 16 bits ({rate.source})"
        lines.append(rate.device + peak)
    if rate.tokens_per_second is not None:
        share = "" if rate.mfu is None else f", {percent(rate.mfu)} of the peak (MFU)"
        most = "at most " if rate.mfu == 1 else ""
        lines.append(f"{most}{rate.tokens_per_second:,.0f} tokens per second in {rate.mode}{share}")
    if rate.tokens is not None and rate.flops is not None:
        lines.append(f"{rough(rate.tokens)} tokens of {rate.mode}: {in_flops(rate.flops)}")
    if rate.seconds is not None and rate.device_hours is not None:
        kind = "device" if rate.device is None else "TPU" if rate.device.startswith("tpu") else "GPU"
        lines.append(f"{_hours(rate.device_hours)} {kind}-hours: {_duration(rate.seconds)} on one device")
    if rate.wall_seconds is not None and rate.devices > 1:
        lines.append(f"{_duration(rate.wall_seconds)} on {rate.devices:,} devices, without losses from communication")
    if rate.joules is not None:
        lines.append(f"{rate.joules / 3.6e6:,.1f} kWh at full power")
    return lines


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def _duration(seconds: float) -> str:
    """Return a duration in the largest unit that it reaches.

    >>> _duration(5400), _duration(200_000), _duration(0.25)
    ('1.5 hours', '2.3 days', '0.25 seconds')
    """
    for unit, length in (("years", 365 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.3g} seconds"
