"""Plot a memory sweep as PNG, SVG or an HTML page."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.errors import BadInput, quoted
from tallystick.extras import needing
from tallystick.files.atomic import write_file
from tallystick.report.numbers import in_bytes

if TYPE_CHECKING:
    from tallystick.answers.memory.sweep import Sweep

MOST_TICKS = 12  # sequence lengths that each get a tick
# A name may contain dollar signs, which are not formulas. A fixed hash salt makes equal sweeps
# equal bytes.
STYLE = {"text.parse_math": False, "svg.hashsalt": "tallystick"}
KINDS = (".png", ".svg", ".html")
PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font-family:sans-serif;max-width:60em;margin:2em auto"><h1>{title}</h1>{picture}
<table><tr><th>tokens</th><th>total</th></tr>{rows}</table></body></html>
"""


def kind_of(path: str) -> str:
    """Return the picture format of a file name's suffix.

    Raises:
        BadInput: for another suffix.
    """
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise BadInput(f"--plot {quoted(path)}: name a file that ends in {', '.join(KINDS)}", code="bad-value")
    return kind


def save(answer: Sweep, path: str) -> None:
    """Write the sweep's picture in the format of the file name's suffix."""
    kind = kind_of(path)
    write_file(Path(path), _page(answer) if kind == ".html" else _drawn(answer, kind[1:]))


def _drawn(answer: Sweep, kind: str) -> bytes:
    with needing("--plot"):
        import matplotlib
    with matplotlib.rc_context(STYLE):
        return _figure(answer, kind)


def _figure(answer: Sweep, kind: str) -> bytes:
    from matplotlib.figure import Figure

    sequences = [one.sequence for one in answer.answers]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    axes.stackplot(
        sequences,
        [[size / 1e9 for size in sizes] for sizes in answer.parts_at_peak.values()],
        labels=[part.replace("_", " ") for part in answer.parts_at_peak],
    )
    device = answer.answers[0].device
    if device is not None:
        axes.axhline(device.room / 1e9, color="black", linestyle="--", label=device.name)
    axes.set(xlabel="sequence length (tokens)", ylabel="GB at the peak", title=f"{answer.source}, {answer.mode}")
    if _crowded(sequences):
        axes.set_xscale("log", base=2)
    if len(sequences) <= MOST_TICKS:
        axes.set_xticks(sequences)
        axes.tick_params("x", rotation=45)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return drawn.getvalue()


def _crowded(sequences: list[int]) -> bool:
    """Return whether most lengths are in the first quarter of a linear axis."""
    first, middle, last = sequences[0], sequences[len(sequences) // 2], sequences[-1]
    return middle - first < (last - first) / 4


def _page(answer: Sweep) -> bytes:
    picture = _drawn(answer, "svg").decode("utf-8")
    rows = "".join(
        f"<tr><td>{one.sequence:,}</td><td style='text-align:right'>{in_bytes(one.total_bytes)}</td></tr>"
        for one in answer.answers
    )
    title = escape(f"{answer.source}: memory in {answer.mode}")
    return PAGE.format(title=title, picture=picture[picture.index("<svg") :], rows=rows).encode()
