"""What torch and transformers say of a config, measured once and committed:
``tests/measured/NAME.json``.

Such a figure is a function of the pinned versions, of the code that measures it and of the config.
So a test asks

    measured("autograd_memory:saved", config, attention="eager")

for what ``saved(config, attention="eager")`` of ``tests/support/autograd_memory.py`` returns, and
gets the committed value, for which nothing is imported. A sixth of the values is measured anew in
each run and must equal the committed one; which sixth is up to the digest of the commit's tree, so
a commit always gets the same, and the next commit another. All of a file is measured anew where its
header names other versions than those that are installed, where the measuring code or a value is
not what it was when the file was written, and where the last commit or the working tree changed it.
What the file lacks is measured, and the end of the run says so.

TALLYSTICK_MEASURE=all measures everything; =none nothing; =write what is lacking, or all of a file
that is stale, and writes just what was asked for (`make measure`).
"""

from __future__ import annotations

import ast
import copy
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from repository import TESTS

FILES = TESTS / "measured"
SHARE = 6  # one value of so many is measured anew
PACKAGES = ("torch", "transformers", "torchao", "peft", "accelerate")  # whose versions decide what is measured
MODE = os.environ.get("TALLYSTICK_MEASURE", "")
DRAWN_ANEW = "TALLYSTICK_EXAMPLES" in os.environ  # configs that no file knows

Values = dict[str, dict[str, Any]]  # of each function, its value by the key of its arguments

taken: Counter[tuple[str, str]] = Counter()  # of each file: how many values were asked for, measured, and lacking
new: dict[str, Values] = {}  # what is to be written


def measured(function: str, *arguments: Any, **options: Any) -> Any:
    """What a function ``MODULE:NAME`` of tests/support returns for arguments that JSON can hold."""
    name, key = function.partition(":")[0], key_of(function, arguments, options)
    committed = load(name).get("values", {}).get(function, {})
    taken[name, "asked"] += 1
    if key in committed and not anew(name, key):
        keep(name, function, key, committed[key])
        return committed[key]
    if MODE == "none":
        raise AssertionError(f"tests/measured/{name}.json lacks {function} of {key}: make measure")
    taken[name, "measured"] += 1
    value = measure(function, arguments, options)
    keep(name, function, key, value)
    if MODE == "write":
        return value
    if key not in committed:
        taken[name, "lacking"] += not DRAWN_ANEW
    else:
        assert value == committed[key], (
            f"tests/measured/{name}.json says {committed[key]} of {function} of {key}, measured now: {value}"
        )
    return value


def keep(name: str, function: str, key: str, value: Any) -> None:
    """Note a value that was asked for, where all of these are written."""
    if MODE == "write":
        new.setdefault(name, {}).setdefault(function, {})[key] = value


def measure(function: str, arguments: Any, options: Any) -> Any:
    """What the function returns now, as JSON holds it, whatever was drawn at random before."""
    import torch

    module, _, called = function.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        value = getattr(import_module(module), called)(*copy.deepcopy(arguments), **copy.deepcopy(options))
    return json.loads(json.dumps(value))


def key_of(function: str, arguments: Any, options: Any) -> str:
    """What stands for the arguments: the model's type where one is named, and a digest."""
    as_held = json.loads(json.dumps([function, arguments, options]))  # numbers that are keys, as text
    whole = json.dumps(as_held, sort_keys=True)
    kind = re.search(r'"model_type": "([^"]*)"', whole)
    return (f"{kind[1]} " if kind else "") + digest(whole)


def digest(whole: str) -> str:
    return sha256(whole.encode()).hexdigest()[:12]


# -- which values are measured anew ---------------------------------------------------------------


def anew(name: str, key: str) -> bool:
    """Whether a value is measured though it is committed."""
    if MODE == "none":
        return False
    return MODE == "all" or bool(why(name)) or (MODE != "write" and int(digest(f"{seed()} {key}"), 16) % SHARE == 0)


@lru_cache
def seed() -> str:
    """The digest of the commit's tree; without a commit, none."""
    return git("rev-parse", "HEAD^{tree}") or ""


@lru_cache
def why(name: str) -> str:
    """Why all of a file is measured anew, or nothing."""
    header = load(name)
    if not header:
        return "there is no such file"
    if header["versions"] != versions():
        return "it is of other versions: " + ", ".join(f"{package} {of}" for package, of in header["versions"].items())
    if header["code"] != code(name):
        return f"tests/support/{name}.py, or what it imports, has changed"
    if header["digest"] != sealed(header["values"]):
        return "a value has changed"
    if MODE != "write" and git("diff", "--name-only", "HEAD^", "--", str(FILES / f"{name}.json")) != "":
        return "the last commit changed it, or no commit is there to compare it with"
    return ""


def git(*arguments: str) -> str | None:
    """What git says of this repository; None where it fails, or where there is none."""
    try:
        done = subprocess.run(["git", *arguments], cwd=TESTS, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache
def load(name: str) -> dict[str, Any]:
    file = FILES / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


@lru_cache
def versions() -> dict[str, str]:
    """The versions that are installed, without the build: a wheel for CPUs measures the same."""
    return {package: metadata.version(package).partition("+")[0] for package in PACKAGES}


def code(name: str) -> str:
    """The digest of a measuring file and of those of the tests that it imports."""
    return digest("\n".join(path.read_text(encoding="utf-8") for path in sorted(sources(name))))


def sources(name: str, seen: frozenset[Path] = frozenset()) -> frozenset[Path]:
    """The files of the tests that importing one executes."""
    path = TESTS / "support" / f"{name}.py"
    if path in seen or not path.exists():
        return seen
    seen |= {path}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in imported:
            seen = sources(module, seen)
    return seen


def sealed(values: Values) -> str:
    return digest(json.dumps(values, sort_keys=True))


# -- writing --------------------------------------------------------------------------------------


def written(name: str, values: Values) -> str:
    """A file: its header, and a value a line."""
    header = {"versions": versions(), "code": code(name), "digest": sealed(values)}
    functions = [
        f"  {json.dumps(function)}: {{\n"
        + ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(of.items()))
        + "\n  }"
        for function, of in sorted(values.items())
    ]
    return json.dumps(header, indent=1)[:-2] + ',\n "values": {\n' + ",\n".join(functions) + "\n }\n}\n"


def add(counts: Iterable[tuple[tuple[str, str], int]], others: dict[str, Values]) -> None:
    """Add what another process took and measured."""
    for (name, what), count in counts:
        taken[name, what] += count
    for name, functions in others.items():
        for function, values in functions.items():
            new.setdefault(name, {}).setdefault(function, {}).update(values)


def write() -> None:
    """Write each file of which anything was measured, with nothing else in it."""
    for name, values in new.items():
        (FILES / f"{name}.json").write_text(written(name, values), encoding="utf-8")


def summary(counts: Counter[tuple[str, str]]) -> list[str]:
    """What the end of a run says of each file."""
    lines = []
    for name in sorted({name for name, _ in counts}):
        asked, anew, lacking = (counts[name, what] for what in ("asked", "measured", "lacking"))
        line = f"tests/measured/{name}.json: {asked:,} values, {anew:,} of them measured anew"
        if MODE not in ("none", "write") and (reason := why(name)):
            line += f": {reason}"
        if lacking:
            line += f"; it lacks {lacking:,}: make measure"
        lines.append(line)
    return lines
