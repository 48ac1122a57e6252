"""Compute the page's answers with the library: JSON, HTML, and equivalent command lines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput
from tallystick.files.remote import Missing
from tallystick.unforeseen import line_of
from tallystick.web import questions
from tallystick.web.controls import controls
from tallystick.web.page_files import needed
from tallystick.web.request import PageRequest
from tallystick.web.snippets import command, python
from tallystick.web.strip import strip

if TYPE_CHECKING:
    from tallystick.answers.memory.answer import Memory
    from tallystick.core.ledger import Ledger

TEXT = "derivation.md"  # the text's file name in the command lines


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
    from tallystick.report.html.page import PICTURES, count_section

    ledger, by, layout = questions.count(asked), asked.choice("by", questions.BY), asked.choice("layout", PICTURES)
    html = count_section(
        ledger, by=by, layout=layout, width=asked.width, unfolded=asked.flag("unfolded"), foldable=True
    )
    return {
        "answer": ledger.to_dict(),
        "html": html,
        "controls": controls(asked.described(ledger), asked.depths),
        **_lines("count", asked, by=by),
    }


def _formula(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import formula_section

    answer = questions.formula(asked)
    return {"answer": answer.to_dict(), "html": formula_section(answer), **_lines("formula", asked)}


def _ties(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import ties_section

    answer = questions.ties(asked)
    return {"answer": answer.to_dict(), "html": ties_section(answer), **_lines("ties", asked)}


def _memory(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import memory_section

    answer = questions.memory(asked)
    html = memory_section(answer, width=asked.width, roles=asked.ledger().by("role"))
    given = {"answer": answer.to_dict(), "html": html, "defaults": _defaults(asked.ledger(), answer)}
    return {**given, **_lines("memory", asked, **questions.run(asked))}


def _defaults(ledger: Ledger, answer: Memory) -> dict[str, Any]:
    """Return the value of each run option that is not given."""
    stated = {name: value for name, value in _stated_defaults().items() if name in questions.RUN}
    cached = {line.what.rpartition(" in ")[2] for line in answer.lines if line.part == "kv_cache"}
    given = {"batch": answer.batch, "sequence": answer.sequence, "dtype": ", ".join(ledger.by("dtype"))}
    return {**stated, **given, "kv_dtype": ", ".join(sorted(cached)), "device": "none", "lora": "none"}


@cache
def _stated_defaults() -> dict[str, Any]:
    """Return the defaults that `memory` itself states."""
    from inspect import Parameter, signature

    from tallystick import memory

    stated = {name: one.default for name, one in signature(memory).parameters.items()}
    return {name: value for name, value in stated.items() if value not in (None, Parameter.empty)}


def _compute(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import compute_section

    answer = questions.compute(asked)
    html = compute_section(answer)
    return {"answer": answer.to_dict(), "html": html, **_lines("compute", asked, **questions.sizes(asked))}


def _fit(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import fit_section

    answer = questions.fit(asked)
    return {"answer": answer.to_dict(), "html": fit_section(answer), **_lines("fit", asked, **questions.run(asked))}


def _devices(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import devices_section

    answer, options = questions.devices(asked), questions.on_devices(asked)
    lines = _lines("fit", asked, **options)
    lines["python"] = python("fit_all", (asked.word(), asked.settings()), **options)
    return {"answer": answer.to_dict(), "html": devices_section(answer), **lines}


def _serve(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import serve_section

    answer, options = questions.serve(asked), questions.served(asked)
    lines = _lines("serve", asked, **options)
    said = {name.removesuffix("_tokens"): value for name, value in options.items()}  # the command's --input, --output
    lines["command"] = command("serve", asked.word(), sets={"--set": asked.settings()}, **said)
    return {"answer": answer.to_dict(), "html": serve_section(answer), **lines}


def _compare(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import compare_section

    answer = questions.compare(asked)
    sets = asked.settings("set"), asked.settings("other_set")
    return {
        "answer": answer.to_dict(),
        "html": compare_section(answer, width=asked.width),
        "command": command("compare", asked.word(), asked.word("other"), sets={"--set-a": sets[0], "--set-b": sets[1]}),
        "python": python("compare", (asked.word(), sets[0]), (asked.word("other"), sets[1])),
    }


def _reconcile(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import reconcile_section

    answer = questions.reconcile(asked)
    settings = asked.settings()
    return {
        "answer": answer.to_dict(),
        "html": reconcile_section(answer, width=asked.width),
        "command": command("reconcile", asked.word(), asked.claim, sets={"--set": settings}),
        "python": python("reconcile", (asked.word(), settings), asked.claim),
    }


def _check(asked: PageRequest) -> dict[str, Any]:
    from tallystick.report.html.page import check_section

    answer = questions.check(asked)
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
    "strip": strip,
    "formula": _formula,
    "ties": _ties,
    "memory": _memory,
    "compute": _compute,
    "fit": _fit,
    "devices": _devices,
    "serve": _serve,
    "compare": _compare,
    "reconcile": _reconcile,
    "check": _check,
    "json": questions.as_json,
    "csv": questions.as_csv,
}
