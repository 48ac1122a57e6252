"""Draw bar charts: memory at each moment, and the steps from one count to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tallystick.answers.compare.compare import Comparison
from tallystick.answers.memory.answer import PHASES, Memory
from tallystick.answers.memory.by_role import role_of, weights_by_role
from tallystick.answers.reconcile.reconcile import Explanation, Reconciliation
from tallystick.report.charts.svg import INK, LETTER, box, cut, element, picture, words
from tallystick.report.numbers import exact, in_giga, rough

OF_ALL = ("weights", "gradients", "optimizer")  # parts of memory that every role has a share of
ROW, BAR, GAP = 38, 16, 12
STUB, BREAK = 14, 6  # pixels of a broken bar before its break, and of the break
MOST_ROWS = 40  # of causes; further causes are one row
NARROW = 0.2  # if the differences are a smaller share of the whole, the axis does not begin at 0


class Segment(NamedTuple):
    """A part of a bar, from one number to another."""

    kind: str
    start: int
    end: int
    title: str
    part: str = ""  # the role whose bytes they are
    shares: Sequence[tuple[str, float]] = ()  # or the roles in it, by their share


class Row(NamedTuple):
    """A bar with its name and its number."""

    name: str
    number: str
    segments: Sequence[Segment]


def draw_memory(answer: Memory, *, width: int = 960, roles: Mapping[str, int] | None = None) -> str:
    """Draw the parts in memory at each moment, as SVG.

    Args:
        answer: the memory answer.
        width: pixels.
        roles: sizes by role, which share the weights' bytes in a training.
    """
    sizes = weights_by_role(answer) or roles or {}
    shares = [(role, size / sum(sizes.values())) for role, size in sizes.items() if size]
    rows = [Row(phase.phase, in_giga(phase.bytes), _parts(answer, phase.phase, shares)) for phase in answer.phases]
    parts = dict.fromkeys(segment.kind for row in rows for segment in row.segments)
    ends = [segment.end for row in rows for segment in row.segments]
    limit = None if answer.device is None else answer.device.room
    most = max([*ends, limit or 0, 1])
    said = "; ".join(f"{row.name} {row.number}" for row in rows)
    return _drawn(
        rows, (0, most), width, label=f"{answer.source}: bytes in each phase. {said}", legend=parts, limit=limit
    )


def _parts(answer: Memory, phase: str, shares: Sequence[tuple[str, float]]) -> list[Segment]:
    segments, there = [], 0
    for line in answer.lines:
        if line.part in PHASES[answer.mode][phase] and line.bytes:
            title = f"{line.label}: {in_giga(line.bytes)}"
            inside = shares if line.part in OF_ALL and line.what != "buffers" else ()
            segments.append(Segment(line.part, there, there + line.bytes, title, role_of(line), inside))
            there += line.bytes
    return segments


def draw_comparison(answer: Comparison, *, width: int = 960) -> str:
    """Draw the causes as steps from one count to the other, as SVG.

    Args:
        answer: the comparison.
        width: pixels.
    """
    steps = [(cause.what, cause.parameters) for cause in answer.causes]
    return _waterfall((answer.source_a, answer.total_a), steps, answer.source_b, width)


def draw_explanation(answer: Reconciliation, explanation: Explanation, *, width: int = 960) -> str:
    """Draw the steps from a model's count to a claimed count, as SVG.

    Args:
        answer: the reconciliation.
        explanation: the explanation to draw.
        width: pixels.
    """
    steps = [(step.what, step.parameters) for step in explanation.steps]
    ranges = answer.low < answer.high
    if explanation.residual:
        steps.append(("not explained: at least" if ranges else "not explained", explanation.residual))
    claimed = f"{exact(answer.low)} to {exact(answer.high)}" if ranges else ""
    return _waterfall((answer.source, answer.actual), steps, f"claimed: {answer.claim}", width, ended=claimed)


def _waterfall(start: tuple[str, int], steps: list[tuple[str, int]], end: str, width: int, *, ended: str = "") -> str:
    """Draw steps that each begin at the end of the one before; `ended` labels the last bar."""
    steps = [(what, number) for what, number in steps if number]
    if len(steps) > MOST_ROWS:
        rest = steps[MOST_ROWS:]
        steps = [*steps[:MOST_ROWS], (f"{len(rest)} other causes", sum(number for _, number in rest))]
    levels = [start[1]]
    for _, number in steps:
        levels.append(levels[-1] + number)
    low, high = min(levels), max(levels)
    axis = (int(low - (high - low) / 3) if high - low < NARROW * high and high > low else 0, high)
    rows = [_whole(*start, axis[0])]
    for (what, number), level in zip(steps, levels, strict=False):
        kind = "more" if number > 0 else "fewer"
        ends = sorted((level, level + number))
        rows.append(Row(what, f"{number:+,}", [Segment(kind, ends[0], ends[1], f"{what}: {number:+,}")]))
    rows.append(_whole(end, levels[-1], axis[0], ended))
    said = "; ".join(f"{row.name} {row.number}" for row in rows)
    return _drawn(rows, axis, width, label=f"From {start[0]} to {end}. {said}")


def _whole(name: str, number: int, low: int, said: str = "") -> Row:
    said = said or exact(number)
    return Row(name, said, [Segment("whole", low, number, f"{name}: {said}")])


def _shares(segment: Segment, x: float, y: float, long: float) -> Iterator[str]:
    """Yield an area for each role's share of a segment: it is seen when the role is pointed at."""
    for role, share in segment.shares:
        area = f"M{x:.1f} {y:.1f}h{share * long:.2f}v{BAR}h{-share * long:.2f}z"
        yield element("path", "", d=area, fill="none", class_="share", data_part=role)
        x += share * long


def _broken(segment: Segment, y: float, long: float) -> str:
    """Draw a bar that does not begin at 0: a piece of it, two slanted strokes, and the rest."""
    pieces = [(0, STUB), (STUB + BREAK, max(long - STUB - BREAK, 1))]
    bars = "".join(box(segment.kind, x, y, wide, BAR, segment.title) for x, wide in pieces)
    strokes = "".join(f"M{x} {y + BAR + 3:.1f}l{BREAK} {-BAR - 6}" for x in (STUB - 2, STUB + 2))
    return bars + element("path", "", d=strokes, fill="none", stroke=INK, class_="break")


def _drawn(
    rows: Sequence[Row], axis: tuple[int, int], width: int, *, label: str, legend: Iterable[str] = (), limit: int | None = None
) -> str:  # fmt: skip
    low, high = axis
    scale = width / ((high - low) or 1)
    drawn, y = [], 0.0
    for row in rows:
        room = width - len(row.number) * LETTER - 16
        drawn.append(words(cut(row.name, room), 0, y + 12))
        drawn.append(words(row.number, width, y + 12, text_anchor="end", class_="number"))
        for one in row.segments:
            x, long = (one.start - low) * scale, max((one.end - one.start) * scale, 1)
            linked = {"data_part": one.part} if one.part else {}
            if one.kind == "whole" and low:
                drawn.append(_broken(one, y + 17, long))
            else:
                drawn.append(box(one.kind, x, y + 17, long, BAR, one.title, **linked))
            drawn += _shares(one, x, y + 17, long)
        y += ROW + (GAP if row is rows[-1] else 0)
    if limit is not None:
        x = min(limit * scale, width - 1)
        drawn.append(element("line", x1=x, x2=x, y1=0, y2=y - GAP, stroke="#b3261e", stroke_width=1.5, class_="limit"))
    if low:
        drawn.append(words(f"the bars are broken: the first {rough(low)} are left out", 0, y + 4, class_="quiet"))
        y += 14
    x = 0.0
    for kind in legend:
        name = kind.replace("_", " ")
        if x and x + 24 + len(name) * LETTER > width:
            x, y = 0.0, y + 18
        drawn.append(box(kind, x, y - 6, 12, 12) + words(name, x + 17, y + 4))
        x += 34 + len(name) * LETTER
    return picture("".join(drawn), width, y + 10, label=label, name="bars")
