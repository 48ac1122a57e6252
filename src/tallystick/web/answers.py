"""Compute the page's answers with the library: JSON, HTML, and equivalent command lines."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput
from tallystick.files.remote import Missing
from tallystick.report.charts.treemap import LAYOUTS
from tallystick.unforeseen import line_of
from tallystick.web.controls import controls
from tallystick.web.page_files import needed
from tallystick.web.request import PageRequest
from tallystick.web.snippets import command, python

if TYPE_CHECKING:
    from tallystick.answers.memory.memory import Memory
    from tallystick.core.ledger import Ledger

BY = ("role", "layer", "tensor")
# Options of `memory` that the page may set, with their types.
RUN: dict[str, type] = {
    "mode": str, "dtype": str, "batch": int, "sequence": int, "kv_dtype": str, "optimizer": str, "precision": str,
    "attention": str, "recompute": str, "loss": str, "lora": int, "dp": int, "zero": int, "tp": int, "pp": int, "ep": int,
    "device": str,
}  # fmt: skip
TEXT = "derivation.md"  # the text's file name in the command lines
SIZES = ("batch", "sequence")  # options that `compute` takes


def answers(request: object, source: str | None) -> dict[str, Any]:
    """Return each requested answer by its name, or an ``error`` in its place.

    If pieces of the model's files are needed first, return these as ``needed``, and ``of`` which
    model: ``model`` or ``other``.

    Args:
        request: the page's JSON.
        source: the source that the command was started with.

    Raises:
        BadInput: for an invalid request or an unknown answer.
    """
    asked = PageRequest(request, source)
    found: dict[str, Any] = {}
    for name in asked.wanted:
        if name not in ANSWERS:
            raise BadInput(f"unknown answer {name[:40]!r}: expected {', '.join(ANSWERS)}", code="unknown-name")
        try:
            found[name] = ANSWERS[name](asked)
        except Missing as missing:
            return {"needed": needed(missing), "of": asked.waiting}
        except MemoryError:  # memory may be too low for the other answers too
            raise
        except BaseException as error:
            found[name] = {"error": line_of(error)}
    return found


def _count(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.page import count_section

    ledger, by = asked.ledger(), asked.choice("by", BY)
    html = count_section(ledger, by=by, layout=asked.choice("layout", LAYOUTS), width=asked.width)
    return {
        "answer": ledger.to_dict(),
        "html": html,
        "controls": controls(asked.described(ledger)),
        **_lines("count", asked, by=by),
    }


def _csv(asked: PageRequest) -> dict[str, Any]:
    """Return the count's table as CSV."""
    from tallystick.report.count import show_count
    from tallystick.report.table import console

    written = io.StringIO()
    show_count(asked.ledger(), console(written), by=asked.choice("by", BY), style="csv")
    return {"csv": written.getvalue()}


def _formula(asked: PageRequest) -> dict[str, Any]:
    from tallystick.answers.formula import formula
    from tallystick.report.page import formula_section

    answer = formula(asked.ledger())
    return {"answer": answer.to_dict(), "html": formula_section(answer), **_lines("formula", asked)}


def _memory(asked: PageRequest) -> dict[str, Any]:
    from tallystick import memory
    from tallystick.report.page import memory_section

    options = asked.options("run", RUN)
    answer = memory(asked.ledger(), **options)
    html = memory_section(answer, width=asked.width)
    given = {"answer": answer.to_dict(), "html": html, "defaults": _defaults(asked.ledger(), answer)}
    return {**given, **_lines("memory", asked, **options)}


def _defaults(ledger: Ledger, answer: Memory) -> dict[str, Any]:
    """Return the value of each run option that is not given."""
    from inspect import signature

    from tallystick import memory

    stated = {name: one.default for name, one in signature(memory).parameters.items() if name in RUN}
    stated = {name: value for name, value in stated.items() if value not in (None, signature(memory).empty)}
    return {**stated, "batch": answer.batch, "sequence": answer.sequence, "dtype": ", ".join(ledger.by("dtype"))}


def _compute(asked: PageRequest) -> dict[str, Any]:
    from tallystick import compute
    from tallystick.report.page import compute_section

    options = {name: value for name, value in asked.options("run", RUN).items() if name in SIZES}
    answer = compute(asked.ledger(), **options)
    return {"answer": answer.to_dict(), "html": compute_section(answer), **_lines("compute", asked, **options)}


def _compare(asked: PageRequest) -> dict[str, Any]:
    from tallystick.answers.compare.compare import compare
    from tallystick.report.page import compare_section

    answer = compare(asked.ledger(), asked.ledger("other", "other_set"))
    sets = asked.settings("set"), asked.settings("other_set")
    return {
        "answer": answer.to_dict(),
        "html": compare_section(answer, width=asked.width),
        "command": command("compare", asked.word(), asked.word("other"), sets={"--set-a": sets[0], "--set-b": sets[1]}),
        "python": python("compare", (asked.word(), sets[0]), (asked.word("other"), sets[1])),
    }


def _reconcile(asked: PageRequest) -> dict[str, Any]:
    from tallystick import reconcile
    from tallystick.report.page import reconcile_section

    answer = reconcile(asked.ledger(), asked.claim)
    settings = asked.settings()
    return {
        "answer": answer.to_dict(),
        "html": reconcile_section(answer, width=asked.width),
        "command": command("reconcile", asked.word(), asked.claim, sets={"--set": settings}),
        "python": python("reconcile", (asked.word(), settings), asked.claim),
    }


def _check(asked: PageRequest) -> dict[str, Any]:
    from tallystick import check
    from tallystick.report.page import check_section

    # A line break marks it as text, not as a path: the page must not name files of this machine.
    answer = check(f"{asked.text}\n", asked.ledger())
    settings = asked.settings()
    return {
        "answer": answer.to_dict(),
        "html": check_section(answer),
        "command": command("check", TEXT, sets={"--set": settings}, against=asked.word()),
        "python": python("check", TEXT, (asked.word(), settings)),
    }


def _lines(name: str, asked: PageRequest, **options: Any) -> dict[str, str]:
    """Return the command line and the Python code that give the same answer."""
    settings = asked.settings()
    said = {key: value for key, value in options.items() if key != "by"}  # the Python ledger has every breakdown
    return {
        "command": command(name, asked.word(), sets={"--set": settings}, **options),
        "python": python(name, (asked.word(), settings), **said),
    }


ANSWERS: dict[str, Callable[[PageRequest], dict[str, Any]]] = {
    "count": _count,
    "csv": _csv,
    "formula": _formula,
    "memory": _memory,
    "compute": _compute,
    "compare": _compare,
    "reconcile": _reconcile,
    "check": _check,
}
