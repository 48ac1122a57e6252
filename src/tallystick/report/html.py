"""Draw a ledger in a notebook: one small table, without scripts or a style sheet."""

from __future__ import annotations

from html import escape

from tallystick.core.ledger import Ledger
from tallystick.errors import visible
from tallystick.report.numbers import exact, percent, rough

_ROW = (
    "<tr><td>{name}</td><td style='text-align:right'>{count}</td><td style='text-align:right'>{share}</td>"
    "<td style='text-align:left'><div style='background:#4c9aff;height:.8em;width:{width:.1f}px'></div></td></tr>"
)
BAR_PIXELS = 200


def ledger_table(ledger: Ledger) -> str:
    """Return the count by role as HTML, with bars, ties and notes."""
    rows = "".join(
        _ROW.format(
            name=escape(row["role"]),
            count=exact(row["parameters"]),
            share=percent(row["share"]),
            width=BAR_PIXELS * row["share"],
        )
        for row in ledger.rows("role")
    )
    remarks = [f"{tie.relation}: {' = '.join(tie.names)}" for tie in ledger.ties] + list(ledger.notes)
    return (
        f"<p><b>{escape(visible(ledger.source))}</b>: {exact(ledger.total)} parameters ({rough(ledger.total)})</p>"
        f"<table><tr><th>role</th><th>parameters</th><th>share</th><th></th></tr>{rows}</table>"
        + "".join(f"<p>{escape(visible(remark))}</p>" for remark in remarks)
    )
