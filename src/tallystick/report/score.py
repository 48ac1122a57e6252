"""Print perplexity and loss of a scored text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tallystick.report.numbers import exact
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.table import draw

if TYPE_CHECKING:
    from tallystick.models.evaluate import Score


def show_score(score: Score, what: str, out: Console, *, style: str = "table") -> None:
    """Print the perplexity in a sentence, the size of the text, and each measure."""
    if style == "csv":
        measures = score.to_dict()
        draw(
            Table([Column(name) for name in measures], [[str(value) for value in measures.values()]]), out, style=style
        )
        return
    out.print(Text(f"{what}: perplexity {score.perplexity:,.2f}", style="bold"))
    lead = "- " if style == "markdown" else "  "
    out.print()
    out.print(Text(f"{lead}{exact(score.tokens)} tokens scored ({exact(score.bytes)} bytes)"))
    out.print(Text(f"{lead}windows of {exact(score.context)} tokens, with a stride of {exact(score.stride)}"))
    out.print()
    rows = [
        ["loss, nats per token", f"{score.loss:.4f}"],
        ["perplexity", f"{score.perplexity:,.2f}"],
        ["bits per byte", f"{score.bits_per_byte:.4f}"],
    ]
    draw(Table([Column("measure"), Column("value", number=True)], rows), out, style=style)
