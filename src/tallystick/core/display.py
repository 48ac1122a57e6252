"""How Python shows an answer: a line as `repr`, a table as `str`, HTML in a notebook.

An answer is data alone, and drawing is the task of `report`, which imports the answers. So this
file imports no drawing: the package's root says here where it is, and it is imported when the
first answer is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Drawing(Protocol):
    """The three ways of showing an answer."""

    def one_line(self, answer: Displayed, /) -> str:
        """Return one line: kind, source and the main number."""

    def plain_text(self, answer: Displayed, /) -> str:
        """Return the command's output, without colour and at most 100 columns wide."""

    def notebook_html(self, answer: Displayed, /) -> str:
        """Return HTML that needs no style sheet and no script."""


_finders: list[Callable[[], Drawing]] = []


def draw_with(find: Callable[[], Drawing]) -> None:
    """Show all answers with the drawing that `find` returns; it is called when one is shown."""
    _finders[:] = [find]


class Displayed:
    """Base of ledgers and answers. A dataclass that inherits it needs ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _finders[0]().one_line(self)

    def __str__(self) -> str:
        return _finders[0]().plain_text(self)

    def _repr_html_(self) -> str:
        return _finders[0]().notebook_html(self)
