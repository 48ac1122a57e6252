"""Ask the library the page's questions: each function gives the answer to one request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput

if TYPE_CHECKING:
    from tallystick.answers.check.check import Check
    from tallystick.answers.compare.compare import Comparison
    from tallystick.answers.compute.compute import Compute
    from tallystick.answers.fit import Fit
    from tallystick.answers.fit_all import FitAll
    from tallystick.answers.formula import Formula
    from tallystick.answers.memory.answer import Memory
    from tallystick.answers.reconcile.reconcile import Reconciliation
    from tallystick.answers.serve.plan import Serve
    from tallystick.answers.ties.ties import Ties
    from tallystick.core.ledger import Ledger
    from tallystick.web.request import PageRequest

BY = ("role", "layer", "tensor")
# Options of `memory` that the page may set, with their types.
RUN: dict[str, type] = {
    "mode": str, "dtype": str, "batch": int, "sequence": int, "kv_dtype": str, "optimizer": str, "precision": str,
    "attention": str, "recompute": str, "loss": str, "lora": int, "dp": int, "zero": int, "tp": int, "pp": int, "ep": int,
    "device": str,
}  # fmt: skip
# Options of `serve` that the page may set.
SERVE: dict[str, type] = {
    "engine": str, "quantization": str, "kv_cache_dtype": str, "tp": int, "pp": int, "max_model_len": int,
    "max_num_seqs": int, "input_tokens": int, "output_tokens": int,
}  # fmt: skip
SIZES = ("batch", "sequence")  # options that `compute` takes


def count(asked: PageRequest) -> Ledger:
    """Return the model's ledger."""
    return asked.ledger()


def formula(asked: PageRequest) -> Formula:
    """Return the closed form."""
    from tallystick.answers.formula import formula as answer

    return answer(asked.ledger())


def ties(asked: PageRequest) -> Ties:
    """Return what is tied. Only the beginnings of values in files are compared."""
    from tallystick.answers.ties.ties import ties as answer

    return answer(asked.ledger())


def run(asked: PageRequest) -> dict[str, Any]:
    """Return the options of `memory` that are given."""
    return asked.options("run", RUN)


def memory(asked: PageRequest) -> Memory:
    """Return the memory of a run."""
    return asked.once("memory", lambda: memory_of(asked.ledger(), asked))


def memory_of(ledger: Ledger, asked: PageRequest) -> Memory:
    """Return the memory of a run of any model."""
    from tallystick import memory as answer

    return answer(ledger, **run(asked))


def sizes(asked: PageRequest) -> dict[str, Any]:
    """Return the options of `compute` that are given."""
    return {name: value for name, value in run(asked).items() if name in SIZES}


def compute(asked: PageRequest) -> Compute:
    """Return the FLOPs of a pass."""
    return asked.once("compute", lambda: compute_of(asked.ledger(), asked))


def compute_of(ledger: Ledger, asked: PageRequest) -> Compute:
    """Return the FLOPs of a pass of any model."""
    from tallystick import compute as answer

    return answer(ledger, **sizes(asked))


def fit(asked: PageRequest) -> Fit:
    """Return whether the run fits on the device."""
    from tallystick import fit as answer

    options = run(asked)
    if "device" not in options:
        raise BadInput("choose a device, or list all", code="bad-value")
    return answer(asked.ledger(), options.pop("device"), **options)


def on_devices(asked: PageRequest) -> dict[str, Any]:
    """Return the options of `fit` without a device that are given."""
    return {name: value for name, value in run(asked).items() if name != "device"}


def devices(asked: PageRequest) -> FitAll:
    """Return on which devices the run fits."""
    from tallystick import fit_all

    return fit_all(asked.ledger(), **on_devices(asked))


def served(asked: PageRequest) -> dict[str, Any]:
    """Return the given options of `serve`; the device is the run's."""
    options = asked.options("serve", SERVE)
    if "device" not in (device := run(asked)):
        raise BadInput("choose a device: an engine's memory depends on it", code="bad-value")
    return {"engine": "vllm", "device": device["device"], **options}


def serve(asked: PageRequest) -> Serve:
    """Return what a serving engine holds and logs."""
    from tallystick import serve as answer

    return answer(asked.ledger(), **served(asked))


def compare(asked: PageRequest) -> Comparison:
    """Return what differs between the model and the other one."""
    from tallystick.answers.compare.compare import compare as answer

    return answer(asked.ledger(), asked.ledger("other", "other_set"))


def reconcile(asked: PageRequest) -> Reconciliation:
    """Return what explains the claimed count."""
    from tallystick import reconcile as answer

    return answer(asked.ledger(), asked.claim)


def check(asked: PageRequest) -> Check:
    """Return the verdict on a derivation."""
    from tallystick import check as answer

    # A line break marks it as text, not as a path: the page must not name files of this machine.
    return answer(f"{asked.text}\n", asked.ledger())


ASKED: dict[str, Callable[[PageRequest], Any]] = {
    "count": count, "formula": formula, "ties": ties, "memory": memory, "fit": fit, "devices": devices, "serve": serve,
    "compute": compute, "compare": compare, "reconcile": reconcile, "check": check,
}  # fmt: skip


def as_json(asked: PageRequest) -> dict[str, str]:
    """Return the answer that ``of`` names as JSON text: a browser's numbers have 53 bits."""
    answer = ASKED[asked.choice("of", tuple(ASKED))](asked)
    return {"text": json.dumps(answer.to_dict(), indent=2, ensure_ascii=False)}


def as_csv(asked: PageRequest) -> dict[str, str]:
    """Return the table of the answer that ``of`` names as CSV."""
    import io
    from importlib import import_module

    from tallystick.report.tables.table import console

    name = asked.choice("of", tuple(_TABLES))
    module, _, show = _TABLES[name].partition(":")
    options = {"by": asked.choice("by", BY)} if name == "count" else {}
    written = io.StringIO()
    show = getattr(import_module(f"tallystick.report.{module}"), show)
    show(ASKED[name](asked), console(written), style="csv", **options)
    return {"text": written.getvalue()}


_TABLES = {
    "count": "count:show_count", "formula": "formula:show_formula", "ties": "ties:show_ties", "memory": "memory:show_memory", "fit": "fit:show_fit",
    "devices": "fit:show_fit_all", "serve": "serve:show_serve", "compute": "compute:show_compute",
    "compare": "compare:show_compare", "reconcile": "reconcile:show_reconciliation", "check": "check:show_check",
}  # fmt: skip  # module and function of `tallystick.report`
