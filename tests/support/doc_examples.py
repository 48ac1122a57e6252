"""What pages show: commands with what they print, and Python with what it gives."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tallystick.cli.main import main

NEGATIVE = (": contradiction\n", "equations is wrong", " does not fit ")  # said where a command exits with 1


def commands(page: str) -> list[tuple[str, str]]:
    """Each command of a page, and what it is said to print."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    shown = [re.fullmatch(r"\$ tallystick ([^\n]+)\n(.*)", block, re.DOTALL) for block in blocks]
    assert all(shown), "a console block begins with $ tallystick"
    return [(match[1], match[2]) for match in shown if match]


def first_of_each(shown: Iterable[str]) -> set[str]:
    """The first of each kind of command: these run in processes of their own, as a user runs
    them.
    """
    return set({command.split()[0]: command for command in reversed(list(shown))}.values())


def assert_printed(command: str, shown: str, folder: Path, *, apart: bool) -> None:
    """Run a command in a folder, in a process apart or in this one, and compare."""
    code, out, err = (in_a_process if apart else in_this_one)(shlex.split(command), folder)
    assert code == int(any(words in shown for words in NEGATIVE)), err
    assert [line.rstrip() for line in out.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def in_a_process(command: list[str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def in_this_one(command: list[str], folder: Path) -> tuple[int, str, str]:
    out, err, modules = io.StringIO(), io.StringIO(), set(sys.modules)
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
    finally:
        for name in set(sys.modules) - modules:  # the user's own, of a folder that another test may not share
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
    return code, out.getvalue(), err.getvalue()


def assert_python(page: str, name: str) -> None:
    """Run the Python of a page, each block after those before it; there is some."""
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", page, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, name, name, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
