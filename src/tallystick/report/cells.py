"""A table as data: columns, rows of text, a total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A heading, and whether its cells are numbers."""

    name: str
    number: bool = False


class Table(NamedTuple):
    """Cells as text; `shares`, one for each row, become bars where there is a terminal to draw them in.

    `narrower` are tables that say the same in less room, for a terminal that this one does not fit, the widest first.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    shares: Sequence[float] = ()
    total: Sequence[str] = ()
    narrower: Sequence[Table] = ()

    def only(self, *names: str) -> Table:
        """The same rows with these columns alone."""
        places = [place for place, column in enumerate(self.columns) if column.name in names]
        rows = [[row[place] for place in places] for row in self.rows]
        total = [self.total[place] for place in places] if self.total else ()
        return self._replace(columns=[self.columns[place] for place in places], rows=rows, total=total, narrower=())
