"""What reading a text has found so far, as its parts add to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tallystick.core.budget import current
from tallystick.derivations.arithmetic import Expression, Name, Number, is_sum
from tallystick.derivations.expressions.tokens import Token, tokens
from tallystick.derivations.statements import TOTAL, Row, Side, Statement, Unread
from tallystick.derivations.text.lines import Line
from tallystick.derivations.text.markup import readable
from tallystick.derivations.text.outline import Outline

LEAST_SUM = 1000  # a smaller number on its own line is a page or list number
LONGEST_HEADING = 60  # characters
MOST_SHOWN = 300  # characters of a statement's text
MOST_BLANKS = 4  # characters of a line for each one that is shown

_STEP = re.compile(r"\W*(?:\w+\s\d{1,2}\s?[:.)-]\s?|\d{1,2}[.)]\s)?[^\d=≈|]+")


class Below(NamedTuple):
    """Where the lines below a heading end, such as "Each layer:"."""

    before: str  # the heading around it
    margin: int  # its indentation
    least: int  # least indentation of a line below it, and one more if the heading is an item
    signs: int  # characters of its comment sign
    within: int = -1  # indentation of the first line below it if that is deeper
    opens: bool = True  # whether no line is below it yet

    def opened(self, line: Line) -> Below:
        """Return it with the first line below: code below a comment is indented like its sign."""
        below = self
        if line.margin < self.least and not line.text.startswith(("#", "/", ";")):
            below = self._replace(margin=self.margin - self.signs, least=self.margin - self.signs)
        within = line.margin if line.margin > below.margin + 1 else -1
        return below._replace(opens=False, within=within)


class Reading:
    """State of a reading: the statements found, and the names defined so far."""

    def __init__(self, known: set[str], *, dots: bool) -> None:
        self.known = known
        self.dots = dots
        self.shown: set[str] = set()  # names whose sizes only an equation shows
        self.heading = self.section = ""
        self.outline = Outline()
        self.pointed = 0  # results behind arrows so far
        self.above: Line | None = None  # the last line with text
        self.outer: list[Below] = []  # where the lines below each heading end
        self.how: int | None = None  # index of the current table's column of products
        self.head: tuple[str, ...] = ()  # words above the columns of the current table
        self.columns = 0  # numbers of a row of the current table that has several
        self.table = 0  # lines of the current table so far
        self.statements: list[Statement] = []
        self.unread: list[Unread] = []
        self.prose: list[Statement] = []
        self.rows: list[Row] = []
        self.refused: list[tuple[int, str]] = []
        self.budget = current()
        self._last: tuple[str, int, list[Token]] = "", 0, []  # a text, the number of names, and its tokens

    def refuse(self, line: Line, why: str) -> None:
        """Skip a line that cannot be parsed, and record the reason."""
        self.refused.append((line.first, why))
        self.unread.append(Unread(line.first, line.text[:MOST_SHOWN], why))

    def _tokens(self, text: str) -> list[Token]:
        if self._last[:2] == (text, len(self.known)):
            return self._last[2]
        found = tokens(text, self.known, dots=self.dots)
        self.budget.step(10 * len(found))  # each token is read, then tried in several expressions
        self._last = text, len(self.known), found
        return found

    def _miss(self, line: Line) -> None:
        """Record a line whose arithmetic is not, or not fully, judged."""
        missed = Unread(line.first, line.text[:MOST_SHOWN])
        if self.unread[-1:] != [missed]:
            self.unread.append(missed)

    def _heading_of(self, line: Line) -> str:
        """Return what heads a number without a label: "### Total parameters", "Step 5: Total"."""
        above = self._right_above(line)
        plain = above.plain if above is not None and len(above.plain) <= LONGEST_HEADING else ""
        return plain if _STEP.fullmatch(plain) else self.heading

    def _right_above(self, line: Line) -> Line | None:
        """Return the line right above another one, or None if that is blank."""
        return self.above if self.above is not None and self.above.last == line.first - 1 else None

    def _add(
        self,
        line: Line,
        label: str,
        sides: Sequence[Side],
        *,
        name: str = "",
        clause: str = "",
        aside: bool = False,
        titles: bool = False,
        column: int = 0,
        defines: bool = True,
    ) -> None:
        if not sides:
            return
        if len(sides) == 1 and not (name or label.strip() or _is_sum(sides[0].expression)):
            heads = (one for one in (self._heading_of(line), self.section) if TOTAL.search(one))
            label = next(heads, "")  # "**Total:**", perhaps with "Summing up the parts:" below it
            if not (label and line.plain.lstrip("≈~- ")[:1].isdigit()):
                return
        first = sides[0].expression
        if isinstance(first, Name) and defines and not name:
            name = first.name
        statement = Statement(
            line.first,
            line.last,
            line.text[:MOST_SHOWN],
            as_shown(line),
            label.strip(" :-*#.,;→|~≈")[-MOST_SHOWN:],
            self.heading,
            name,
            tuple(sides),
            clause or line.plain,
            self.section,
            aside,
            titles,
            column,
            self.outline.above(),
        )
        self.statements.append(statement)
        if name:
            self.known.add(name)


def as_shown(line: Line) -> str:
    """Return the beginning of a line as it is shown; a long line is asked for at each equation."""
    return readable(line.plain[: MOST_BLANKS * MOST_SHOWN])[:MOST_SHOWN]


def _is_sum(side: Expression) -> bool:
    """Return whether a side without any words is a sum, or may be the sum of the lines above it."""
    if is_sum(side):
        return all(isinstance(one, Number) and one.value >= LEAST_SUM for one in side.parts)
    return isinstance(side, Number) and side.unit == 1 and not side.rounded and side.value >= LEAST_SUM
