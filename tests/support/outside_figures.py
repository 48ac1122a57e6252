"""Figures that others published, and ours: `tests/outside/*.csv`, and the engines' logs.

A row is one figure: its kind, the project that published it, where it stands, the model and what
was run, a command of ours without ``tallystick``, the value of its JSON that answers (an expression
over its keys), their figure as printed and its unit, why ours differs, and the ratio of ours to
theirs that the last release had. No text of others is copied: numbers and links are.

The logs of serving engines have their own files, which `engine_logs` reads; `engine_figures` are
figures of the same kind. As a script it writes the ratios of now into the files.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shlex
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import engine_logs
from repository import ROOT
from tallystick import count
from tallystick.cli.main import main as tallystick
from tallystick.cli.parser import build_parser

FOLDER = ROOT / "tests" / "outside"
KINDS = {
    "count": "Parameter counts",
    "weights": "Weights",
    "kv": "KV cache",
    "activations": "Activations",
    "peak": "Peak memory",
    "flops": "FLOPs",
    "mfu": "MFU and FLOP/s",
}
UNITS = {
    "params": 1, "K params": 1e3, "M params": 1e6, "B params": 1e9, "T params": 1e12,
    "bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "tokens": 1, "requests": 1, "layers": 1, "x": 1, "%": 0.01,
    "FLOP": 1, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12, "PFLOP": 1e15, "EFLOP": 1e18, "ZFLOP": 1e21, "YFLOP": 1e24,
    "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s-days": 1e15 * 86400, "hours": 3600, "K hours": 3.6e6, "M hours": 3.6e9,
    "days": 86400, "bits a weight": 1, "GB/s": 1e9, "KB": 1e3,
}  # fmt: skip


class Figure(NamedTuple):
    """A published figure, and ours."""

    place: str  # file and line
    kind: str
    project: str
    source: str
    model: str
    command: str
    theirs: str  # as printed
    unit: str
    ours: float  # in the unit
    why: str
    ratio: str  # recorded: of the last release; "" of an engine's log, whose page records it

    @property
    def decimals(self):
        return len(self.theirs.partition(".")[2])

    @property
    def agrees(self):
        """Whether ours rounds to what they printed."""
        return abs(self.ours - float(self.theirs)) <= 0.5000001 * 10**-self.decimals

    @property
    def error(self):
        return self.ours / float(self.theirs) - 1

    @property
    def now(self):
        """The ratio of ours to theirs, as it is recorded."""
        return f"{self.ours / float(self.theirs):.4f}"


def cells():
    """Return the rows of all files, by file, as they are written."""
    found = {}
    for path in sorted(FOLDER.glob("*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            found[path] = list(csv.DictReader(file))
    return found


@cache
def figures():
    """Return the figures of `tests/outside`."""
    return tuple(
        _figure(f"{path.name}:{line}", row) for path, rows in cells().items() for line, row in enumerate(rows, 2)
    )


def figures_of(project, kind):
    """Return the figures of one kind that a project published, without asking for the others."""
    return [
        _figure(f"{path.name}:{line}", row)
        for path, rows in cells().items()
        for line, row in enumerate(rows, 2)
        if (row["project"], row["kind"]) == (project, kind)
    ]


def _figure(place, row):
    ours = value_of(row["command"], row["value"]) / UNITS[row["unit"]]
    names = ("kind", "project", "source", "model", "command", "theirs", "unit")
    return Figure(place, *(row[name] for name in names), ours, row["why"], row["ratio"])


def value_of(command, expression):
    """Return the value of an expression over the JSON that a command gives."""
    return eval(expression, {"__builtins__": {"sum": sum}}, vars(answer(command)))


@cache
def answer(command):
    """Return the JSON that a command gives, in this process; its keys are attributes.

    Each model is counted once, whatever commands ask of it, and the parser is made once.
    """
    out = io.StringIO()
    with (
        patch("tallystick.cli.options.count", _counted),
        patch("tallystick.cli.parser.build_parser", _parser),
        contextlib.chdir(FOLDER),  # where configs without a preset are
        contextlib.redirect_stdout(out),
    ):
        code = tallystick([*shlex.split(command), "--format", "json"])
    assert code in (0, 1), f"tallystick {command} failed"
    return json.loads(out.getvalue(), object_hook=lambda found: SimpleNamespace(**found))


_parser = cache(build_parser)
_models = {}


def _counted(source, **settings):
    asked = source, repr(sorted(settings.items()))
    if asked not in _models:
        _models[asked] = count(source, **settings)
    return _models[asked]


ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "llama_cpp": "llama.cpp"}
LOGGED = {  # a quantity of a log: its kind, what it is called, its unit and digits
    "weights_gib": ("weights", "weights", "GiB", 2),
    "activations_gib": ("activations", "activations", "GiB", 2),
    "kv_gib": ("kv", "KV cache", "GiB", 2),
    "kv_tokens": ("kv", "tokens", "tokens", 0),
    "concurrency": ("kv", "concurrency", "x", 2),
    "mem usage": ("weights", "weights", "GiB", 2),
    "#tokens": ("kv", "tokens", "tokens", 0),
    "K size": ("kv", "keys", "GiB", 2),
    "V size": ("kv", "values", "GiB", 2),
    "KV size": ("kv", "latent cache", "GiB", 2),
    "states": ("kv", "recurrent states", "GiB", 2),
    "KV and states": ("kv", "KV cache", "GiB", 2),
    "max_running_requests": ("kv", "requests", "requests", 0),
    "mem_fraction_static": ("kv", "static share", "x", 3),
    "max_mamba_cache_size": ("kv", "slots of states", "requests", 0),
}


@cache
def engine_figures():
    """Return the figures of the engines' logs."""
    found = []
    for engine, project in ENGINES.items():
        if (engine_logs.FOLDER / f"{engine}_logs.csv").exists():
            for row in engine_logs.rows(engine):
                found += [_logged(project, one) for one in engine_logs.judged(row)]
    return tuple(found)


def _logged(project, one):
    kind, what, unit, decimals = LOGGED.get(one.what) or (_kind(one.what), one.what, "MiB", 2)
    row, size = one.row, UNITS[unit]
    place = f"{row.engine}_logs.csv:{row.number}"
    return Figure(
        place, kind, project, row.source, f"{row.model}: {what}", row.command, f"{one.theirs / size:.{decimals}f}",
        unit, one.ours / size, WHY.get(what, ""), "",
    )  # fmt: skip


WHY = {"activations": "a rule of widths and vocabulary for what the engine's profile run measured"}


def _kind(label):
    return {"model": "weights", "KV": "kv", "RS": "kv"}.get(
        label.replace(" buffer size", "").split()[-1], "activations"
    )


def write():
    """Write the ratios of now into the files."""
    now = {one.place: one.now for one in figures()}
    for path, rows in cells().items():
        for line, row in enumerate(rows, 2):
            row["ratio"] = now[f"{path.name}:{line}"]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    write()
