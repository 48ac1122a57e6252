"""Print what a serving engine holds and logs, whether it starts, and what would help."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tallystick.answers.serve.plan import Serve
from tallystick.report.memory import show_room
from tallystick.report.numbers import exact, giga
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

PARTS = ("weights_bytes", "activations_bytes", "other_bytes", "kv_cache_bytes")


def show_serve(answer: Serve, out: Console, *, explain: bool = False, style: str = "table") -> None:
    """Print the engine's lines, its parts in bytes, what limits it, and the changes that help.

    Args:
        answer: the plan.
        out: where to print.
        explain: whether to print each line's formula and source.
        style: as for `draw`.
    """
    if style == "csv":
        draw(_as_row(answer), out, style=style)
        return
    lead = "- " if style == "markdown" else "  "
    verdict = "starts" if answer.starts else "does not start"
    name = f"{answer.engine} {answer.engine_version}".strip()
    out.print(
        Text(
            f"{answer.source}: {name} {verdict} on {answer.device.name}",
            style="bold green" if answer.starts else "bold red",
        )
    )
    out.print()
    for one in answer.explained:
        out.print(Text(f"{lead}{one.line}"))
        if explain and one.formula:
            out.print(Text(f"{lead}  = {one.formula}", style="dim"))
        if explain and one.source:
            out.print(Text(f"{lead}  from {one.source}", style="dim"))
    out.print()
    if answer.weights_bytes:
        draw(_sizes(answer), out, style=style)
        out.print()
    for limit in answer.limits if answer.starts else answer.limits[1:]:
        out.print(Text(f"{lead}{'limit: ' if answer.starts else ''}{limit}"))
    _show_speed(answer, out, lead, explain=explain)
    if answer.requests is not None:
        asked = answer.options.get("input_tokens", 0), answer.options.get("output_tokens", 0)
        out.print(Text(f"{lead}{exact(answer.requests)} requests of {exact(sum(asked))} tokens at the same time"))
    if answer.changes:
        out.print(Text(f"{lead}{'more room' if answer.starts else 'to make it start'}, each alone:"))
    for change in answer.changes:
        held = f"{exact(change.kv_cache_tokens)} tokens, {change.max_concurrency:.2f}x"
        out.print(Text(f"{lead}  {change.flags}: {held}"))
    if not answer.starts and not answer.changes:
        out.print(Text(f"{lead}no single option makes it start", style="red"))
    show_room(answer.device._replace(context=0), out, lead)
    for note in (*answer.notes, *(answer.speed.assumptions if answer.speed and explain else ())):
        out.print(Text(f"{lead}note: {note}", style="dim"))


def _show_speed(answer: Serve, out: Console, lead: str, *, explain: bool) -> None:
    for bound in answer.speed.bounds if answer.speed else ():
        out.print(Text(f"{lead}{bound.line}"))
        if explain:
            out.print(Text(f"{lead}  = {bound.formula}", style="dim"))
            out.print(Text(f"{lead}  from {bound.source}", style="dim"))


def _sizes(answer: Serve) -> Table:
    """Return the parts of one device in bytes."""
    columns = [Column("one device"), Column("bytes", True), Column("GiB", True)]
    rows = []
    for part in PARTS:
        size = getattr(answer, part)
        what = part.removesuffix("_bytes").replace("_", " ").replace("kv", "KV").replace("other", "outside of torch")
        rows.append([what, exact(size), giga(size, binary=True, places=2)])
    if answer.engine == "llama.cpp":
        rows.append(["in the host's memory", exact(answer.host_bytes), giga(answer.host_bytes, binary=True, places=2)])
    return Table(columns, rows)


def _as_row(answer: Serve) -> Table:
    """Return the answer as one row for a program."""
    row = {
        "source": answer.source,
        "engine": answer.engine,
        "device": answer.device.name,
        "starts": str(answer.starts).lower(),
        **{part: str(getattr(answer, part)) for part in PARTS},
        "kv_cache_bytes_per_token": str(answer.kv_cache_bytes_per_token),
        "kv_cache_tokens": str(answer.kv_cache_tokens),
        "max_concurrency": f"{answer.max_concurrency:.4f}",
    }
    return Table([Column(name) for name in row], [list(row.values())])
