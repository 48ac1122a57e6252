"""Print a checked derivation in a terminal: numbered lines, marks and remarks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tallystick.answers.check.check import Check
from tallystick.derivations.text.markup import plain, readable
from tallystick.errors import visible
from tallystick.legible import legible
from tallystick.report.derivation.marks import Mark, Marked, marked, shown
from tallystick.report.tables.narrow import broken

NARROWEST = 20  # characters of the narrowest column that text is folded to
GAP = 3  # characters between a line and its notes
WIDEST = 64  # characters of a line up to which its notes are in a separate column
MOST_HEADING = 300  # characters of a heading that are searched
WIDEST_HEADING = 80  # characters of a heading that are shown
MOST_UNREAD = 3  # consecutive unjudged lines that are shown
_COLOURS = {Mark.RIGHT: "green", Mark.WRONG: "bold red", Mark.CARRIED: "yellow", Mark.UNJUDGED: "dim"}
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\\(?:sub)*section|\*\*[^*]+\*\*:?\s*$)")


def show_lines(answer: Check, out: Console) -> None:
    """Print every judged line under its heading, and the first of consecutive unjudged lines.

    Args:
        answer: the checked derivation.
        out: where to print.
    """
    lines = marked(answer)
    margin = _Margin(lines, out)
    before = 0
    for line, more in _shown(lines):
        headings = list(_headings(answer.lines[before : line.first - 1]))
        if headings or not before:
            out.print()
        for heading in headings:
            margin.heading(heading)
        margin.line(line, more)
        before = max(before, line.last)


def _shown(lines: Sequence[Marked]) -> Iterator[tuple[Marked, int]]:
    """Yield each shown line, with the number of hidden unjudged lines after it."""
    place = 0
    while place < len(lines):
        end = place
        while end < len(lines) and lines[end].mark is Mark.UNJUDGED:
            end += 1
        kept = lines[place : end if end - place <= MOST_UNREAD + 1 else place + MOST_UNREAD] or lines[place : place + 1]
        yield from ((line, 0) for line in kept[:-1])
        yield kept[-1], max(end - place - len(kept), 0)
        place = max(end, place + 1)


def _headings(lines: Sequence[str]) -> Iterator[str]:
    """Yield the last heading above a statement, and the last line after it that ends in a colon."""
    heading = lead = ""
    for line in lines:
        text = line[:MOST_HEADING]
        if _HEADING.match(text):
            heading, lead = text, ""
        elif text.rstrip(" *").endswith((":", "：")):
            lead = text
    for text in filter(None, (heading, lead)):
        if said := shown(readable(plain(text.split("\n")[0]))).strip(" *#"):
            yield said


class _Margin:
    """Columns for line numbers and marks, and the remaining width for text."""

    def __init__(self, lines: Sequence[Marked], out: Console) -> None:
        self.out = out
        self.digits = max((len(str(line.first)) for line in lines), default=1) + 1
        self.marks = {mark: legible(mark.value, out.encoding) for mark in Mark}
        self.wide = max(map(len, self.marks.values()))
        self.indent = self.digits + self.wide + 2
        self.room = max(out.width - self.indent, NARROWEST)
        texts = [(cell_len(self._legible(line.plain)), self._notes(line)) for line in lines if line.notes]
        # Notes that do not fit behind their line are printed below it.
        fitting = (wide for wide, notes in texts if wide + GAP + cell_len(notes) <= self.room)
        self.column = max((wide for wide in fitting if wide <= WIDEST), default=0)

    def heading(self, text: str) -> None:
        """Print a heading on one line, cut to the width."""
        first, *rest = _folded(self._legible(text), min(self.room - 1, WIDEST_HEADING))
        self._under(f"{first}…" if rest else first, "dim")

    def line(self, line: Marked, more: int) -> None:
        """Print a statement with its number and mark, and its remarks below or at the side."""
        pieces = _folded(self._legible(line.plain), self.room)
        notes = self._notes(line)
        gap = max(self.column, cell_len(pieces[0])) + GAP
        fits = len(pieces) == 1 and gap + cell_len(notes) <= self.room
        colour = _COLOURS[line.mark]
        text = Text(f"{line.first:>{self.digits}} ", style="dim")
        text.append(f"{self.marks[line.mark]:<{self.wide}} ", style=colour)
        text.append(pieces[0], style="dim" if line.mark is Mark.UNJUDGED else "default")
        if notes and fits:
            text.append(" " * (gap - cell_len(pieces[0])) + notes, style="dim")
        self.out.print(text)
        for piece in pieces[1:]:
            self._under(piece, "dim" if line.mark is Mark.UNJUDGED else "default")
        for sentence in line.sentences:
            self._under(self._legible(sentence), colour.removeprefix("bold "), further=2)
        if notes and not fits:
            self._under(notes, "dim", further=2)
        if more:
            self._under(self._legible(f"… and {more:,} more lines not judged"), "dim")

    def _notes(self, line: Marked) -> str:
        return self._legible("; ".join(line.notes))

    def _under(self, text: str, style: str, *, further: int = 0) -> None:
        for piece in _folded(text, self.room - further):
            self.out.print(Text(" " * (self.indent + further) + piece, style=style))

    def _legible(self, text: str) -> str:
        return legible(visible(text), self.out.encoding)


def _folded(text: str, width: int) -> list[str]:
    return broken(text, width) if cell_len(text) > width else [text]
