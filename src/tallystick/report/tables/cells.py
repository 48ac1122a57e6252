"""A table as data: columns, rows of text, a total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A heading, and whether its cells are numbers."""

    name: str
    number: bool = False


class Table(NamedTuple):
    """Cells as text. `shares`, one per row, become bars in a terminal with room for them.

    `parts` say which role each row is of, and `tensors` which tensors, for a page that links them.
    `narrower` are smaller versions for a terminal that is too narrow for this one, widest first.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    shares: Sequence[float] = ()
    total: Sequence[str] = ()
    narrower: Sequence[Table] = ()
    parts: Sequence[str] = ()
    tensors: Sequence[str] = ()

    def only(self, *names: str) -> Table:
        """Return the same rows with only these columns."""
        places = [place for place, column in enumerate(self.columns) if column.name in names]
        rows = [[row[place] for place in places] for row in self.rows]
        total = [self.total[place] for place in places] if self.total else ()
        return self._replace(columns=[self.columns[place] for place in places], rows=rows, total=total, narrower=())
