"""Which presets tie embedding and head: a page with a table by date and size, and its picture.

python docs/site/tied_presets.py docs/tied-presets.md
"""

from __future__ import annotations

import math
import sys
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

import tallystick
from tallystick import architectures
from tallystick.presets import PRESETS, RELEASES
from tallystick.report.numbers import rough

TOP = """\
# Which models tie?

Do published models share one matrix between token embedding and LM head, and how large is it? All presets with a head and a month of release.

`make outputs` writes this page and its picture from the presets. [Why tie?](why-tie.md) has the reasons.

![all presets by month of release and parameters, tied and untied](tied-presets.svg)

Of {all} models {tied} tie. {bands}

*Matrix*: vocabulary × width, and its share of all parameters. A tied model has one, an untied model two.

| model | released | parameters | tied | matrix | share |
| --- | --- | --: | --- | --: | --: |
"""
BANDS = (
    (0, 1e9, "below 1B"),
    (1e9, 4e9, "from 1B to 4B"),
    (4e9, 20e9, "from 4B to 20B"),
    (20e9, math.inf, "above 20B"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP_EDGE, BOTTOM = 860, 460, 70, 20, 30, 50
TIED, UNTIED = "#0072b2", "#d55e00"  # Okabe and Ito's, for readers with any colour vision


class Model(NamedTuple):
    """What the page shows of one preset."""

    name: str
    month: str
    parameters: int
    tied: bool
    matrix: int

    @property
    def share(self) -> float:
        """The matrix as a share of the parameters."""
        return self.matrix / self.parameters


@cache
def models() -> tuple[Model, ...]:
    """All presets with a head and a month, by date and size."""
    found = []
    for name, values in PRESETS.items():
        ledger, month = tallystick.count(name), RELEASES[name].month
        heads = [entry for entry in ledger.entries if entry.role == "head" and len(entry.shape) == 2]
        if values["model_type"] in architectures.TEACHING or not month or not heads:
            continue
        head = max(heads, key=lambda entry: entry.size)  # of several, such as those that predict further tokens
        tied = any(head.name in tie.names for tie in ledger.ties)
        found.append(Model(name, month, ledger.total, tied, head.size))
    return tuple(sorted(found, key=lambda one: (one.month, one.parameters, one.name)))


def page() -> str:
    """The page: how many tie at each size, and the table."""
    rows = "".join(
        f"| `{one.name}` | {one.month} | {rough(one.parameters)} | {'tied' if one.tied else 'untied'} | {rough(one.matrix)}"
        f" | {one.share:.1%} |\n"
        for one in models()
    )
    counts = []
    for low, high, what in BANDS:
        inside = [one for one in models() if low <= one.parameters < high]
        counts.append(f"{what} {sum(one.tied for one in inside)} of {len(inside)}")
    tied = sum(one.tied for one in models())
    return TOP.format(all=len(models()), tied=tied, bands=f"By size: {', '.join(counts)}.") + rows


def picture() -> str:
    """The picture: a circle for each tied model, a square for each untied one."""
    months = [_months(one.month) for one in models()]
    sizes = [math.log10(one.parameters) for one in models()]
    first, last, low, high = min(months) - 3, max(months) + 3, min(sizes) - 0.15, max(sizes) + 0.15

    def x(month: float) -> float:
        return LEFT + (month - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (size - low) / (high - low) * (HEIGHT - TOP_EDGE - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2:g}" y="18" text-anchor="middle" font-size="15">Which models tie embedding and head</text>',
    ]
    for year in range(math.ceil(first / 12), math.floor(last / 12) + 1):
        lines.append(_line(x(12 * year), TOP_EDGE, x(12 * year), HEIGHT - BOTTOM))
        lines.append(f'<text x="{x(12 * year):.1f}" y="{HEIGHT - 32}" text-anchor="middle">{year}</text>')
    for power in range(math.ceil(low), math.floor(high) + 1):
        lines.append(_line(LEFT, y(power), WIDTH - RIGHT, y(power)))
        lines.append(f'<text x="{LEFT - 6}" y="{y(power) + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    lines += [_mark(one, x(_months(one.month)), y(math.log10(one.parameters))) for one in models()]
    lines.append(f'<text x="{WIDTH / 2:g}" y="{HEIGHT - 10}" text-anchor="middle">release</text>')
    middle = HEIGHT / 2
    lines.append(
        f'<text x="16" y="{middle:g}" text-anchor="middle" transform="rotate(-90 16 {middle:g})">parameters</text>'
    )
    for place, (what, tied) in enumerate((("tied", True), ("untied", False))):
        at = WIDTH - RIGHT - 150 + 75 * place
        lines.append(_mark(Model(what, "", 1, tied, 0), at, HEIGHT - BOTTOM - 14))
        lines.append(f'<text x="{at + 10}" y="{HEIGHT - BOTTOM - 10}">{what}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _mark(one: Model, x: float, y: float) -> str:
    title = f"<title>{escape(one.name)}{f', {one.month}, {rough(one.parameters)}' if one.month else ''}</title>"
    if one.tied:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{TIED}" fill-opacity="0.8">{title}</circle>'
    return (
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="none" stroke="{UNTIED}" stroke-width="2">'
        f"{title}</rect>"
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _power(power: int) -> str:
    return rough(10**power).replace(".0", "")


def _months(month: str) -> int:
    year, _, number = month.partition("-")
    return 12 * int(year) + int(number) - 1


def main() -> None:
    """Write the page that is named, and the picture next to it."""
    path = Path(sys.argv[1])
    path.write_text(page(), encoding="utf-8")
    path.with_suffix(".svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
