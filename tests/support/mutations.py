"""Which single-line breaks of our code the tests catch: a sample, drawn with a seed.

    python tests/support/mutations.py src/tallystick/runtimes/transformers/cache.py \\
        --tests tests/runtimes/test_cache.py --breaks 20
    python tests/support/mutations.py src/tallystick/architectures/*.py -k "{stem}" \\
        --tests tests/architectures/test_architectures.py --breaks 50 --seed 3

Each break changes one line of a copy of src/: an operator, a number, a truth value turned round, or
the line dropped. The tests that are named run on it until one fails, in a fork of this process, so
that torch is imported once. `-k` narrows them; {stem} is the name of the file that is broken.
Breaks that no test caught are listed; some change nothing that anybody could see. `--tree` runs the
tests of another checkout on the same breaks.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from repository import ROOT

SWAPPED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "+", ast.Lt: "<=", ast.LtE: "<",
    ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
    ast.NotIn: "in", ast.And: "or", ast.Or: "and",
}  # fmt: skip


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
        swapped(node)
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


def swapped(node: ast.BinOp | ast.Compare | ast.BoolOp) -> None:
    """Put another operator in the place of the first."""
    kind = type(node.ops[0] if isinstance(node, ast.Compare) else node.op)
    if kind not in SWAPPED:
        return
    model = ast.parse(f"a {SWAPPED[kind]} b", mode="eval").body
    if isinstance(node, ast.Compare) and isinstance(model, ast.Compare):
        node.ops[0] = model.ops[0]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and isinstance(model, ast.BinOp | ast.BoolOp):
        node.op = model.op


def caught(broken: Break, tree: Path, arguments: list[str]) -> bool:
    """Whether a test of a tree fails on it; all run in a process of their own."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / broken.path.resolve().relative_to(ROOT / "src")
        lines = target.read_text(encoding="utf-8").splitlines()
        lines[broken.line - 1] = broken.new
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        child = os.fork()
        if not child:
            os.chdir(tree)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            sys.path.insert(0, str(copy))
            os.environ["PYTHONPATH"] = str(copy)
            sys.dont_write_bytecode = True
            import pytest

            os._exit(int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments]) != 0))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--breaks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tree", type=Path, action="append", help="a checkout whose tests are run; this one without any"
    )
    parser.add_argument("-k", default="")
    asked = parser.parse_args()
    import torch
    import transformers

    assert torch
    assert transformers
    everything = [one for path in asked.files for one in breaks(path)]
    drawn = random.Random(asked.seed).sample(everything, min(asked.breaks, len(everything)))
    trees = asked.tree or [ROOT]
    survivors = dict.fromkeys(trees, 0)
    for one in drawn:
        narrowed = ["-k", asked.k.format(stem=one.path.stem)] if asked.k else []
        verdicts = {tree: caught(one, tree.resolve(), [*asked.tests, *narrowed]) for tree in trees}
        for tree, held in verdicts.items():
            survivors[tree] += not held
        said = ", ".join("caught" if held else "SURVIVED" for held in verdicts.values())
        print(f"{said}: {one.path}:{one.line}: {one.new.strip()}", flush=True)  # noqa: T201
    for tree, count in survivors.items():
        print(f"{tree}: {len(drawn) - count} of {len(drawn)} caught")  # noqa: T201


if __name__ == "__main__":
    main()
