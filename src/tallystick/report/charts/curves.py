"""Draw the curves of a training run, as a PNG and an HTML page."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import Any

from tallystick.files.atomic import write_file
from tallystick.report.charts.plot import STYLE

PICTURE, PAGE = "report.png", "report.html"
_HTML = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font-family:sans-serif;max-width:60em;margin:2em auto"><h1>{title}</h1>{picture}
<table>{rows}</table></body></html>
"""


def save_curves(log: list[dict[str, Any]], figures: dict[str, Any], out: Path) -> list[Path]:
    """Write `report.png` and `report.html` to a run's folder; nothing without matplotlib.

    Args:
        log: the lines of the run's log.
        figures: further facts for the page's table, one row each.
        out: the run's folder.

    Returns:
        The files written.
    """
    try:
        import matplotlib
    except ImportError:
        return []
    with matplotlib.rc_context(STYLE):
        drawings = _drawn(log)
    picture = drawings["svg"].decode()
    rows = "".join(
        f"<tr><th align=left>{escape(key)}</th><td>{escape(str(value))}</td></tr>" for key, value in figures.items()
    )
    page = _HTML.format(title=escape(f"training {out.name}"), picture=picture[picture.index("<svg") :], rows=rows)
    contents = {out / PICTURE: drawings["png"], out / PAGE: page.encode()}
    for path, content in contents.items():
        write_file(path, content)
    return list(contents)


def _drawn(log: list[dict[str, Any]]) -> dict[str, bytes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    losses, speeds = figure.subplots(1, 2)
    for what, label in (("step", "training"), ("evaluated", "validation")):
        lines = [line for line in log if line["kind"] == what]
        losses.plot([line["step"] for line in lines], [line["loss"] for line in lines], ".-", label=label)
    losses.set(xlabel="steps", ylabel="loss, nats per token")
    losses.legend()
    lines = [line for line in log if line["kind"] == "step"]
    speeds.plot([line["step"] for line in lines], [line["speed"] for line in lines])
    speeds.set(xlabel="steps", ylabel="tokens per second", ylim=(0, None))
    drawings = {}
    for kind, metadata in (("png", None), ("svg", {"Date": None})):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata=metadata)
        figure.set_layout_engine("none")  # one layout for both
        drawings[kind] = drawn.getvalue()
    return drawings
