"""What pages show: commands with what they print, and Python with what it gives."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

NEGATIVE = (": contradiction\n", "equations is wrong", " does not fit ")  # said where a command exits with 1


def commands(page: str) -> list[tuple[str, str]]:
    """Each command of a page, and what it is said to print."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    shown = [re.fullmatch(r"\$ tallystick ([^\n]+)\n(.*)", block, re.DOTALL) for block in blocks]
    assert all(shown), "a console block begins with $ tallystick"
    return [(match[1], match[2]) for match in shown if match]


def assert_printed(command: str, shown: str, folder: Path) -> None:
    """Run a command in a folder, and compare."""
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *shlex.split(command)],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == int(any(words in shown for words in NEGATIVE)), done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def assert_python(page: str, name: str) -> None:
    """Run the Python of a page, each block after those before it; there is some."""
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", page, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, name, name, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
