"""The line that `repr` gives of each answer, after the name of its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallystick.report.numbers import exact, giga, in_flops, in_gigabytes

if TYPE_CHECKING:
    from tallystick.answers.check.check import Check
    from tallystick.answers.compare.compare import Comparison
    from tallystick.answers.compute.compute import Compute
    from tallystick.answers.fit import Fit
    from tallystick.answers.fit_all import FitAll
    from tallystick.answers.formula import Formula
    from tallystick.answers.memory.answer import Memory
    from tallystick.answers.memory.sweep import Sweep
    from tallystick.answers.reconcile.reconcile import Reconciliation
    from tallystick.answers.serve.everywhere import FitEngine
    from tallystick.answers.serve.plan import Serve
    from tallystick.answers.ties.ties import Ties
    from tallystick.core.ledger import Ledger
    from tallystick.live.survive import Survival

LONGEST = 60  # characters of a formula


def _ledger(ledger: Ledger) -> str:
    return f"of {ledger.source}: {exact(ledger.total)} parameters"


def _formula(answer: Formula) -> str:
    text = answer.text if len(answer.text) <= LONGEST else answer.text[: LONGEST - 1] + "…"
    return f"of {answer.source}: {exact(answer.value)} = {text}"


def _comparison(answer: Comparison) -> str:
    gap = f"{answer.gap:+,}" if answer.gap else "0"
    return f"of {answer.source_a} and {answer.source_b}: {gap} parameters, {_many(len(answer.causes), 'cause')}"


def _reconciliation(answer: Reconciliation) -> str:
    best = answer.explanations[0]
    how = ", ".join(step.what for step in best.steps) or "each tensor counted once"
    return f"of {answer.source} with {answer.claim}: {how if answer.explained else 'not explained'}"


def _check(answer: Check) -> str:
    against = "" if answer.against is None else f" against {answer.against}"
    wrong = sum(not equation.correct for equation in answer.equations)
    judged = f"{wrong} of {_many(len(answer.equations), 'equation')} wrong"
    total = "" if answer.total_true is None or answer.total_claimed is None else _total(answer)
    return f"of {answer.source}{against}: {judged}{total}"


def _total(answer: Check) -> str:
    off = (answer.total_claimed or 0) + answer.rounding - (answer.total_true or 0)
    return f", total off by {off:+,}" if off else ", total right"


def _memory(answer: Memory) -> str:
    return f"of {answer.source}, {answer.mode}: {in_gigabytes(answer.total_bytes)} at {answer.peak}"


def _sweep(answer: Sweep) -> str:
    sizes = f"{in_gigabytes(min(answer.total_bytes))} to {in_gigabytes(max(answer.total_bytes))}"
    return f"of {answer.source}, {answer.mode}: {_many(len(answer.answers), 'dtype' if answer.along == 'dtype' else 'sequence length')}, {sizes}"


def _fit(answer: Fit) -> str:
    verdict = "fits" if answer.fits else "does not fit"
    takes, room = answer.asked.total_bytes, answer.device.room
    places = 1 if min(takes, room) >= 10**9 else 3
    sizes = f"{giga(takes, places=places)} of {giga(room, places=places)} GB"
    return f"of {answer.source} on {answer.device.name}, {answer.mode}: {verdict}, {sizes}"


def _fit_all(answer: FitAll) -> str:
    fitting = {cell.device for cell in answer.devices if cell.fits}
    return f"of {answer.source}, {answer.mode}: fits {_many(len(fitting), 'device')} of those known"


def _fit_engine(answer: FitEngine) -> str:
    starting = sum(one.starts for one in answer.devices)
    return f"of {answer.source} by {answer.engine}: starts on {_many(starting, 'device')} of {len(answer.devices)}"


def _serve(answer: Serve) -> str:
    verdict = f"{exact(answer.kv_cache_tokens)} tokens of KV cache" if answer.starts else "does not start"
    return f"of {answer.source} by {answer.engine} on {answer.device.name}: {verdict}"


def _compute(answer: Compute) -> str:
    flops = f"{in_flops(answer.forward_flops)} forward, {in_flops(answer.training_flops)} in training"
    return f"of {answer.source}, {exact(answer.batch)} × {exact(answer.sequence)} tokens: {flops}"


def _ties(answer: Ties) -> str:
    groups, problems = _many(len(answer.groups), "group"), _many(len(answer.problems), "problem")
    return f"of {answer.source}: {answer.verdict}, {groups}, {problems}"


def _survival(answer: Survival) -> str:
    kept = sum(row.outcome == "kept" for row in answer.rows)
    return f"of {answer.source or 'small models'}: {kept} of {_many(len(answer.rows), 'operation')} kept the tie"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# By the name of the answer's class.
LINES: dict[str, Callable[[Any], str]] = {
    "Ledger": _ledger,
    "Formula": _formula,
    "Comparison": _comparison,
    "Reconciliation": _reconciliation,
    "Check": _check,
    "Memory": _memory,
    "Sweep": _sweep,
    "Fit": _fit,
    "FitAll": _fit_all,
    "FitEngine": _fit_engine,
    "Serve": _serve,
    "Compute": _compute,
    "Ties": _ties,
    "Survival": _survival,
}
