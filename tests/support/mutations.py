"""Which single-line breaks of our code the tests catch: a sample, drawn with a seed.

    python tests/support/mutations.py src/tallystick/runtimes/transformers/cache.py \\
        --tests tests/runtimes/test_cache.py --breaks 20
    python tests/support/mutations.py src/tallystick/architectures/*.py -k "{stem}" \\
        --tests tests/architectures/test_architectures.py --breaks 50 --seed 3
    python tests/support/mutations.py --rooms --breaks 200

Each break changes one line of a copy of src/: an operator, a number, a truth value turned round, or
the line dropped. The tests that are named run on it until one fails, in a fork of this process, so
that torch is imported once. `-k` narrows them; {stem} is the name of the file that is broken.
Breaks that no test caught are listed; some change nothing that anybody could see. `--tree` runs the
tests of another checkout on the same breaks. `--rooms` draws over all rooms, or over those that are
named, in proportion to their lines, with the tests that `mutation_rooms.py` names for each.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

import pytest

import mutation_rooms
from repository import ROOT

SWAPPED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "+", ast.Lt: "<=", ast.LtE: "<",
    ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
    ast.NotIn: "in", ast.And: "or", ast.Or: "and",
}  # fmt: skip


LONGEST = 400  # seconds that tests may run: a break can make a loop endless
MOST = 8 << 30  # bytes that they may take, likewise


class Break(NamedTuple):
    """One line of a file, and what it becomes."""

    path: Path
    line: int  # counted from 1
    new: str


def breaks(path: Path) -> Iterator[Break]:
    """Every break of a file: only of what stands on one line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.expr | ast.stmt) or node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1]
        before, code, after = cut(line, node.col_offset, node.end_col_offset)
        for new in changed(node, code):
            if new != code:
                yield Break(path, node.lineno, before + new + after)


def cut(line: str, start: int, end: int | None) -> tuple[str, str, str]:
    """A line in three; ast counts bytes."""
    raw = line.encode()
    return raw[:start].decode(), raw[start:end].decode(), raw[end:].decode()


def changed(node: ast.expr | ast.stmt, code: str) -> Iterator[str]:
    """What a piece of code could be instead."""
    if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
        if swapped(node):  # not `int | None`
            yield f"({ast.unparse(node)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield str(node.value + 1)
    elif isinstance(node, ast.Assign | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield "pass"


def swapped(node: ast.BinOp | ast.Compare | ast.BoolOp) -> bool:
    """Put another operator in the place of the first; False where we know none."""
    kind = type(node.ops[0] if isinstance(node, ast.Compare) else node.op)
    if kind not in SWAPPED:
        return False
    model = ast.parse(f"a {SWAPPED[kind]} b", mode="eval").body
    if isinstance(node, ast.Compare) and isinstance(model, ast.Compare):
        node.ops[0] = model.ops[0]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and isinstance(model, ast.BinOp | ast.BoolOp):
        node.op = model.op
    return True


def fails(broken: Break | None, tree: Path, arguments: list[str]) -> bool:
    """Whether a test of a tree fails on a break, or on none; all run in a process of their own."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy)  # with what is compiled, which the broken file's date outdates
        if broken:
            target = copy / broken.path.resolve().relative_to(ROOT / "src")
            lines = target.read_text(encoding="utf-8").splitlines()
            lines[broken.line - 1] = broken.new
            target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        child = os.fork()
        if not child:
            run(copy, tree, arguments)
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # with what the tests started
        return status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def run(copy: Path, tree: Path, arguments: list[str]) -> NoReturn:
    """Run the tests of a tree on a copy of src/, in this process, which ends with their code."""
    os.setsid()
    signal.alarm(LONGEST)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    os.chdir(tree)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    os.environ.setdefault("TALLYSTICK_MEASURE", "none")  # the committed figures are the truth
    sys.dont_write_bytecode = True
    os._exit(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--rooms", nargs="*", choices=mutation_rooms.ROOMS, help="draw over these, or over all")
    parser.add_argument("--quick", action="store_true", help="of a room only the first tests")
    parser.add_argument("--breaks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tree", type=Path, action="append", help="a checkout whose tests are run; this one without any"
    )
    parser.add_argument("-k", default="")
    asked = parser.parse_args()
    if (asked.rooms is None) == (not asked.files) or bool(asked.files) != bool(asked.tests):
        parser.error("give files with --tests, or --rooms")
    import torch
    import transformers

    assert torch
    assert transformers
    if asked.rooms is None:
        of_files(asked)
    else:
        of_rooms(asked.rooms or [*mutation_rooms.ROOMS], asked.breaks, asked.seed, quick=asked.quick)


def of_files(asked: argparse.Namespace) -> None:
    """Break the files that are named."""
    everything = [one for path in asked.files for one in breaks(path)]
    drawn = random.Random(asked.seed).sample(everything, min(asked.breaks, len(everything)))
    trees = asked.tree or [ROOT]
    survivors = dict.fromkeys(trees, 0)
    for one in drawn:
        narrowed = ["-k", asked.k.format(stem=one.path.stem)] if asked.k else []
        verdicts = {tree: fails(one, tree.resolve(), [*asked.tests, *narrowed]) for tree in trees}
        for tree, held in verdicts.items():
            survivors[tree] += not held
        said = ", ".join("caught" if held else "SURVIVED" for held in verdicts.values())
        say(f"{said}: {one.path}:{one.line}: {one.new.strip()}")
    for tree, count in survivors.items():
        say(f"{tree}: {len(drawn) - count} of {len(drawn)} caught")


def of_rooms(names: list[str], count: int, seed: int, *, quick: bool) -> None:
    """Break lines of rooms, as many of each as its share of all lines."""
    total: Counter[str] = Counter()
    for name, drawn in mutation_rooms.draw(names, count, seed, lambda path: [*breaks(path)]).items():
        verdicts: Counter[str] = Counter()
        for one in drawn:
            began = time.monotonic()
            verdict = held_by(mutation_rooms.ROOMS[name].tests(one.path)[: 1 if quick else 2], one)
            verdicts[verdict] += 1
            say(
                f"{verdict}: {one.path.relative_to(ROOT)}:{one.line}: {one.new.strip()} ({time.monotonic() - began:.0f} s)"
            )
        say(f"{name}: {len(drawn)} drawn: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
        total += verdicts
    say(f"all: {total.total()} drawn: " + ", ".join(f"{count} {verdict}" for verdict, count in total.items()))


def held_by(stages: Sequence[list[str]], broken: Break) -> str:
    """Which tests fail on a break, the first or the wider; none counts that fails without it."""
    for tests, verdict in zip(stages, ("caught at once", "caught by wider tests"), strict=False):
        if fails(broken, ROOT, tests):
            files = tuple(sorted(test for test in tests if test.endswith(".py")))
            return verdict if sound(files) else "tests fail WITHOUT A BREAK"
    return "SURVIVED"


@cache
def sound(tests: tuple[str, ...]) -> bool:
    """Whether these tests pass as the code is."""
    return not fails(None, ROOT, [*tests])


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
