"""Show an answer in Python: one line for `repr`, plain text for `str`, HTML for a notebook.

`tallystick.core.display.Displayed` calls these. Only the file that draws the answer is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple

from tallystick.core.display import Displayed
from tallystick.errors import visible
from tallystick.report.one_line import LINES

COLUMNS = 100  # of plain text


class _Show(NamedTuple):
    """The function that draws an answer in a terminal, and its options in a notebook."""

    module: str
    function: str
    notebook: dict[str, Any] = {}  # noqa: RUF012  # never written to


# By the name of the answer's class, so that no other answer is imported.
_SHOWS = {
    "Ledger": _Show("count", "show_count"),
    "Formula": _Show("formula", "show_formula", {"steps": True}),
    "Comparison": _Show("compare", "show_compare"),
    "Reconciliation": _Show("reconcile", "show_reconciliation"),
    "Check": _Show("check", "show_check"),
    "Memory": _Show("memory", "show_memory"),
    "Sweep": _Show("memory", "show_sweep"),
    "Fit": _Show("fit", "show_fit"),
    "FitAll": _Show("fit", "show_fit_all"),
    "FitEngine": _Show("fit_engine", "show_fit_engine"),
    "Serve": _Show("serve", "show_serve"),
    "Compute": _Show("compute", "show_compute"),
    "Ties": _Show("ties", "show_ties"),
    "Survival": _Show("survival", "show_survival"),
}


def one_line(answer: Displayed, /) -> str:
    """Return one line: kind, source and the main number.

    Args:
        answer: a ledger or an answer.
    """
    kind = _kind(answer, LINES)
    return visible(f"<{kind} {LINES[kind](answer)}>")


def plain_text(answer: Displayed, /) -> str:
    """Return what the command prints, without colour and at most 100 columns wide.

    Args:
        answer: a ledger or an answer.
    """
    from tallystick.report.tables.table import PlainText

    drawn = StringIO()
    show, _ = _show_of(answer)
    show(answer, PlainText(drawn, COLUMNS))
    return "\n".join(line.rstrip() for line in drawn.getvalue().split("\n")).strip("\n")


def notebook_html(answer: Displayed, /) -> str:
    """Return the same as HTML with inline styles, since a notebook has no style sheet of ours.

    Args:
        answer: a ledger or an answer.
    """
    from tallystick.report.html.sheet import notebook

    show, options = _show_of(answer)
    return notebook(show, answer, **options)


def _show_of(answer: Displayed) -> tuple[Callable[..., None], dict[str, Any]]:
    show = _SHOWS[_kind(answer, _SHOWS)]
    return getattr(import_module(f"tallystick.report.{show.module}"), show.function), show.notebook


def _kind(answer: Displayed, known: dict[str, Any]) -> str:
    """Return the name of the answer's class, or of the class that it is derived from."""
    return next(one.__name__ for one in type(answer).__mro__ if one.__name__ in known)
