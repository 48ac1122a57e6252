"""Count the parameters of a language model exactly, and check its tied weights.

>>> import tallystick
>>> tallystick.count("gpt2").total
124439808
>>> tallystick.count("gpt2", tie_word_embeddings=False).total
163037184
"""

from __future__ import annotations

# First, so that Ctrl-C during the other imports ends the command cleanly too.
from tallystick import startup  # isort: skip

if startup.is_command():
    startup.prepare()

from typing import TYPE_CHECKING, Any

from tallystick.core import display
from tallystick.core.entries import Entry, Tie
from tallystick.core.ledger import Ledger
from tallystick.costs import compute, fit, fit_all, memory
from tallystick.errors import BadInput
from tallystick.questions import check, compare, count, formula, reconcile, ties
from tallystick.serving import fit_engine, serve
from tallystick.version import __version__ as __version__

if TYPE_CHECKING:
    from tallystick.live.check import assert_tied
    from tallystick.live.optimizer import check_optimizer
    from tallystick.live.retie import retie
    from tallystick.live.watch import assert_kept, watch


def _drawing() -> display.Drawing:
    from tallystick.report import display as drawing

    return drawing


display.draw_with(_drawing)  # so that answers can be shown, though core imports no report

__all__ = [
    "BadInput",
    "Entry",
    "Ledger",
    "Tie",
    "assert_kept",
    "assert_tied",
    "check",
    "check_optimizer",
    "compare",
    "compute",
    "count",
    "fit",
    "fit_all",
    "fit_engine",
    "formula",
    "memory",
    "reconcile",
    "retie",
    "serve",
    "ties",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Import the functions for live modules on first use: counting a config needs none of them."""
    if name in ("assert_kept", "assert_tied", "check_optimizer", "retie", "watch"):
        from tallystick import live

        return getattr(live, name)
    raise AttributeError(f"module 'tallystick' has no attribute {name!r}")
