"""Public logs of serving engines, and our plan of each: `tests/runtimes/*_logs.csv`.

A row is a run that somebody published: its link, the engine's command line, and what the log said;
an empty cell was not published. `split` says what a row is for: constants were read from rows that
are ``fit``, and are judged by rows that are ``judge``. The rule: of vLLM's rows, those of
Llama-3.1-8B in bfloat16 at 8,192 tokens and on 0.6.4, of Qwen3-14B before 0.19, of gpt-oss-20b, and
of Qwen3.5-9B, whose profile run is its vision tower's, are ``fit``;
of llama.cpp's, those of Pythia-2.8B, of Llama-3.1-8B, and of gpt-oss-20b with steps of 2,048; of
SGLang's, those of Llama-3.1-8B on a whole H100 by its default share or by its weights alone, and
that of Qwen3-235B on four H100.

SGLang's log says what was free before the load. A device such as ``h100 free 78.48GiB`` says so
too; without it, our constant for the CUDA context is judged as well. If a log has a pool's tokens
and not what was free, ``--max-total-tokens`` names them, and the bytes of that many are judged.
As a script: the errors of each row, and their summary.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from functools import cache
from typing import NamedTuple
from unittest import mock

import tallystick
from repository import ROOT
from tallystick.answers.serve import serve
from tallystick.core.units import parse_size
from tallystick.runtimes.command_lines import pasted

FOLDER = ROOT / "tests" / "runtimes"
GIB, MIB = 2**30, 2**20


class Row(NamedTuple):
    """A published run."""

    number: int  # of its line in the file
    engine: str
    split: str
    source: str
    version: str
    model: str
    preset: str
    overrides: dict  # config keys, and their values as JSON
    device: str  # its name, or its memory as torch counted it; then what was free, if the log says so
    command: str
    starts: bool | None  # None: it was stopped by something that is no matter of memory, or not published
    said: dict  # what the log said: bytes, tokens, requests

    @property
    def judges(self):
        return self.split == "judge"


class Judged(NamedTuple):
    """A number of a log, and ours."""

    row: Row
    what: str
    theirs: float
    ours: float

    @property
    def error(self):
        return (self.ours - self.theirs) / self.theirs


NUMBERS = ("#tokens", "max_running_requests", "mem_fraction_static", "max_mamba_cache_size")


def rows(engine="vllm"):
    with open(FOLDER / f"{engine}_logs.csv", newline="") as file:
        return [_row(number, engine, cells) for number, cells in enumerate(csv.DictReader(file), 2)]


def _row(number, engine, cells):
    units = {"weights_gib": GIB, "activations_gib": GIB, "kv_gib": GIB}
    said = {
        name: float(cells[name]) * units.get(name, 1)
        for name in ("weights_gib", "activations_gib", "kv_gib", "kv_tokens", "concurrency")
        if cells.get(name)
    }
    unit = {"llama_cpp": MIB}.get(engine, GIB)
    for text in filter(None, cells.get("lines", "").split("; ")):
        label, _, sizes = text.partition(" = ")
        said[label] = sum(float(size) for size in sizes.split(", ")) * (1 if label in NUMBERS else unit)
    overrides = dict(word.split("=", 1) for word in cells["overrides"].split())
    return Row(
        number, engine, cells["split"], cells["source"], cells["version"], cells["model"], cells["preset"],
        overrides, cells["device"], cells["command"],
        {"yes": True, "no": False}.get(cells["starts"]), said,
    )  # fmt: skip


@cache
def _ledger(preset, overrides):
    return tallystick.count(preset, **{key: json.loads(value) for key, value in overrides})


def plan(row):
    """Return our plan of a row, from its command line. Each row is planned once."""
    if (row.engine, row.number) not in _plans:
        _plans[row.engine, row.number] = _planned(row)
    return _plans[row.engine, row.number]


_plans = {}


def _planned(row):
    line = pasted(shlex.split(row.command))
    if row.engine == "llama_cpp":  # the file's name ends with its type
        line.options["quantization"] = line.source.removesuffix(".gguf").rpartition("-")[2]
    ledger = _ledger(row.preset, tuple(row.overrides.items()))
    line.options.pop("engine_version", None)  # of an image; the row's is known better
    device, _, free = row.device.partition(" free ")
    if free:
        line.options["free_memory"] = parse_size(free)
    with mock.patch.object(serve, "changes", return_value=()):  # advice, which no row is judged by
        return tallystick.serve(ledger, engine=line.engine, device=device, engine_version=row.version, **line.options)


OURS = {
    "weights_gib": "weights_bytes",
    "activations_gib": "activations_bytes",
    "kv_gib": "kv_cache_bytes",
    "kv_tokens": "kv_cache_tokens",
    "concurrency": "max_concurrency",
    "mem usage": "weights_bytes",
    "#tokens": "kv_cache_tokens",
}
CHOSEN = {"max_running_requests": "max_num_seqs", "mem_fraction_static": "gpu_memory_utilization"}


def judged(row):
    answer = plan(row)
    return [Judged(row, what, theirs, _ours(answer, what)) for what, theirs in row.said.items()]


def _ours(answer, what):
    """Return our number: an attribute, or the sum of the lines with a label, in bytes."""
    if what in OURS:
        return getattr(answer, OURS[what])
    if what in CHOSEN:
        return answer.options[CHOSEN[what]]
    if answer.engine == "sglang":
        return _of_sglang(answer, what)
    found = re.findall(rf"{what} = +([\d.]+) MiB", "\n".join(answer.lines))
    return sum(map(float, found)) * MIB


def _of_sglang(answer, what):
    """Return a number of SGLang's lines; the states' bytes are those of the line's formula."""
    states = sum(
        int(one.formula.partition(" B")[0].replace(",", ""))
        for one in answer.explained
        if one.line.startswith("Mamba Cache")
    )
    if what == "states":
        return states
    if what == "KV and states":
        return answer.kv_cache_bytes + states
    text = "\n".join(answer.lines)
    if what == "max_mamba_cache_size":
        return int(re.search(r"max_mamba_cache_size: (\d+)", text)[1])
    tokens = answer.options.get("max_total_tokens", answer.kv_cache_tokens)
    return float(re.search(rf"{what}: ([\d.]+) GB", text)[1]) * GIB * tokens / answer.kv_cache_tokens


def errors_of(found):
    """Return what judges of some rows, by quantity."""
    errors = {}
    for row in found:
        for one in judged(row) if row.judges else ():
            errors.setdefault(one.what, []).append(one)
    return errors


def main(engine):
    found = [one for row in rows(engine) for one in judged(row)]
    for one in found:
        print(f"{one.row.split:5} {one.row.version:5} {one.row.model[-40:]:40} {one.what:15} {one.error:+8.2%}")  # noqa: T201
    for split in ("fit", "judge"):
        for what in dict.fromkeys(one.what for one in found):
            errors = [abs(one.error) for one in found if one.row.split == split and one.what == what]
            if errors:
                within = sum(error <= (0.1 if what == "activations_gib" else 0.01) for error in errors)
                print(f"{split} {what}: {len(errors)} rows, mean {sum(errors) / len(errors):.2%}, {within} within")  # noqa: T201
    for row in rows(engine):
        if row.starts not in (None, plan(row).starts):
            print("starts or not:", row.number, row.model, row.starts)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:] or ["vllm"])
