"""Draw answers as HTML: sections for the web page, and standalone files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from tallystick.answers.check.check import Check
from tallystick.answers.compare.compare import Comparison
from tallystick.answers.compute.compute import Compute
from tallystick.answers.fit import Fit
from tallystick.answers.fit_all import FitAll
from tallystick.answers.formula import Formula, formula
from tallystick.answers.memory.answer import Memory
from tallystick.answers.reconcile.reconcile import Reconciliation
from tallystick.answers.serve.plan import Serve
from tallystick.answers.ties.ties import Ties
from tallystick.core.ledger import Ledger
from tallystick.report.charts.bars import draw_comparison, draw_explanation, draw_memory
from tallystick.report.charts.diagram import draw_model
from tallystick.report.charts.treemap import LAYOUTS, draw_tensors
from tallystick.report.check import show_check
from tallystick.report.compare import show_compare
from tallystick.report.compute import show_compute
from tallystick.report.count import show_count
from tallystick.report.derivation.marked_text import marked_text
from tallystick.report.fit import show_fit, show_fit_all
from tallystick.report.formula import show_formula
from tallystick.report.html.mathml import typeset
from tallystick.report.html.sheet import section
from tallystick.report.memory import show_memory
from tallystick.report.reconcile import show_reconciliation
from tallystick.report.serve import show_serve
from tallystick.report.terms import Terms
from tallystick.report.ties import show_ties

STYLE_SHEET = Path(__file__).parent / "page.css"
WIDTH = 960  # pixels
PICTURES = ("diagram", *LAYOUTS)
MOST_ROWS = 2000  # single tensors in a browser's table
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
<main>
{body}
</main>
</html>
"""


def count_section(
    ledger: Ledger,
    *,
    by: str = "role",
    depth: int | None = None,
    layout: str = "diagram",
    width: int = WIDTH,
    unfolded: bool = False,
    foldable: bool = False,
) -> str:
    """Return a count's picture and table.

    Args:
        ledger: the model.
        by: grouping: ``"role"``, ``"layer"``, ``"module"``, ``"tensor"`` or ``"dtype"``.
        depth: levels of the module tree; None shows all.
        layout: ``"diagram"``, ``"treemap"`` or ``"icicle"``.
        width: pixels of the picture.
        unfolded: whether the diagram has each layer, not one for all of its kind.
        foldable: whether the page can unfold it.
    """
    if layout == "diagram":
        picture = draw_model(ledger, width=width, unfolded=unfolded, foldable=foldable)
    else:
        picture = draw_tensors(ledger, by=by, layout=layout, width=width)
    if by in ("layer", "tensor") and sum(entry.copies for entry in ledger.rolled) > MOST_ROWS:
        note = f"<p class='note'>more than {MOST_ROWS:,} tensors: the table is by role; the command's --by {by} lists all</p>"
        return section(show_count, ledger, picture=picture + note)
    return section(show_count, ledger, picture=picture, by=by, depth=depth)


def formula_section(answer: Formula) -> str:
    """Return the typeset closed form, and each of its products."""
    math = f'<div class="formula" tabindex="0" role="group" aria-label="typeset">{typeset(answer.expression, Terms(answer))}</div>'
    return math + section(show_formula, answer, steps=True)


def memory_section(answer: Memory, *, width: int = WIDTH, roles: Mapping[str, int] | None = None) -> str:
    """Return the memory at each moment, and each part of it.

    Args:
        answer: the memory answer.
        width: pixels of the picture.
        roles: sizes by role, for links from a part of the model to its part of the memory.
    """
    return section(show_memory, answer, picture=draw_memory(answer, width=width, roles=roles))


def fit_section(answer: Fit) -> str:
    """Return whether a run fits on a device, and the changes that would help."""
    return section(show_fit, answer)


def devices_section(answer: FitAll) -> str:
    """Return the devices on which a run fits, by dtype of the weights."""
    return section(show_fit_all, answer)


def serve_section(answer: Serve) -> str:
    """Return the lines that an engine logs, and its parts in bytes."""
    return section(show_serve, answer)


def ties_section(answer: Ties) -> str:
    """Return what is tied, and the verdict."""
    return section(show_ties, answer)


def compute_section(answer: Compute) -> str:
    """Return the FLOPs, part by part."""
    return section(show_compute, answer)


def compare_section(answer: Comparison, *, width: int = WIDTH) -> str:
    """Return the causes as steps between the counts and in words, and the tensors that differ."""
    picture = draw_comparison(answer, width=width)
    return section(show_compare, answer, picture=picture, tensors=len(answer.tensors) <= MOST_ROWS)


def reconcile_section(answer: Reconciliation, *, width: int = WIDTH) -> str:
    """Return the simplest explanation of a claim as steps, then each explanation as a sum."""
    return section(show_reconciliation, answer, picture=draw_explanation(answer, answer.explanations[0], width=width))


def check_section(answer: Check) -> str:
    """Return the text with its marks, and the steps from its total to the model's."""
    return section(show_check, answer, picture=marked_text(answer))


def check_page(answer: Check) -> str:
    """Return a checked derivation as one HTML file."""
    title = answer.source if answer.against is None else f"{answer.source}, against {answer.against}"
    return page(title, {"Line by line": check_section(answer)})


def count_page(ledger: Ledger, *, by: str = "role", depth: int | None = None) -> str:
    """Return a count as one HTML file."""
    sections = {
        "Where the parameters are": count_section(ledger, by=by, depth=depth),
        "Each tensor by its size": draw_tensors(ledger, by=by),
    }
    if ledger.model.symbols:
        sections["Formula"] = formula_section(formula(ledger))
    return page(f"{ledger.source}: {ledger.total:,} parameters", sections)


def compare_page(answer: Comparison) -> str:
    """Return a comparison as one HTML file."""
    return page(f"{answer.source_a} and {answer.source_b}", {"What differs": compare_section(answer)})


def page(title: str, sections: Mapping[str, str]) -> str:
    """Return one HTML file with a section per heading, in the reader's light or dark scheme.

    Args:
        title: of the page.
        sections: HTML of each section, by its heading; "" for none.
    """
    headed = {f"<h2>{escape(name)}</h2>\n" if name else "": inner for name, inner in sections.items()}
    body = "\n".join(f"<section>\n{heading}{inner}\n</section>" for heading, inner in headed.items())
    return _PAGE.format(
        title=escape(title), style=STYLE_SHEET.read_text(encoding="utf-8"), body=f"<h1>{escape(title)}</h1>\n{body}"
    )
