"""A sweep as a picture: PNG, SVG, or a page that holds it. The one file that needs matplotlib."""

from __future__ import annotations

import io
import os
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.errors import BadInput, quoted
from tallystick.report.numbers import in_bytes

if TYPE_CHECKING:
    from tallystick.answers.sweep import Sweep

KINDS = (".png", ".svg", ".html")
PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font-family:sans-serif;max-width:60em;margin:2em auto"><h1>{title}</h1>{picture}
<table><tr><th>tokens</th><th>total</th></tr>{rows}</table></body></html>
"""


def kind_of(path: str) -> str:
    """The kind of picture that a file's name asks for."""
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise BadInput(f"--plot {quoted(path)}: name a file that ends in {', '.join(KINDS)}")
    return kind


def save(answer: Sweep, path: str) -> None:
    """Write the picture beside its name, and rename it when it is whole."""
    kind = kind_of(path)
    content = _page(answer) if kind == ".html" else _drawn(answer, kind[1:])
    try:
        with tempfile.NamedTemporaryFile(dir=Path(path).parent, prefix=".plot-", delete=False) as file:
            try:
                file.write(content)
                file.close()
                os.chmod(file.name, 0o644)  # what a temporary file is not: for others to read
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _drawn(answer: Sweep, kind: str) -> bytes:
    try:
        import matplotlib
    except ImportError:
        raise BadInput("--plot draws with matplotlib: pip install 'tallystick[plot]'") from None
    from matplotlib.figure import Figure

    sequences = [one.sequence for one in answer.answers]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    if len(sequences) > 1:
        axes.stackplot(
            sequences,
            [[size / 1e9 for size in sizes] for sizes in answer.parts.values()],
            labels=[part.replace("_", " ") for part in answer.parts],
        )
        axes.set_xscale("log", base=2)
    device = answer.answers[0].device
    if device is not None:
        axes.axhline(device.memory / 1e9, color="black", linestyle="--", label=device.name)
    axes.set(xlabel="tokens of a sequence", ylabel="GB at the fullest moment", title=f"{answer.source}, {answer.mode}")
    axes.set_xticks(sequences, [f"{number:,}" for number in sequences], rotation=45)
    axes.minorticks_off()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    drawn = io.BytesIO()
    # The same bytes each time: no date, and ids that do not come from chance.
    with matplotlib.rc_context({"svg.hashsalt": "tallystick"}):
        figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return drawn.getvalue()


def _page(answer: Sweep) -> bytes:
    picture = _drawn(answer, "svg").decode("utf-8")
    rows = "".join(
        f"<tr><td>{one.sequence:,}</td><td style='text-align:right'>{in_bytes(one.total)}</td></tr>"
        for one in answer.answers
    )
    title = escape(f"{answer.source}: memory in {answer.mode}")
    return PAGE.format(title=title, picture=picture[picture.index("<svg") :], rows=rows).encode()
