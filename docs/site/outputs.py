"""The outputs on the pages: each command and each line of Python, run again and written in place;
and the addresses of the project, from pyproject.toml.

python docs/site/outputs.py README.md docs/*.md docs/*/*.md docs/*/*.ipynb
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from rich.text import Text

from tallystick.cli.main import main
from tallystick.report.tables.table import PlainText
from terminal import Terminal, terminal

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"  # where the pages' commands run
CONSOLE = re.compile(r"(?<=```console\n)\$ .*?(?=```)", re.DOTALL)
PYTHON = re.compile(r"(?<=```pycon\n).*?(?=```)", re.DOTALL)
HEAD = re.compile(r" \| head -(\d+)$")  # cuts an output, as in a shell
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
WIDTH = 94  # columns: what a page of GitHub and of the site shows without scrolling
EXIT_CODE = "echo $?"  # stands after a command whose exit code is not 0


class Run(NamedTuple):
    """A command on a page, the output there, and its exit code."""

    command: str
    shown: str
    code: int = 0


def runs(page: str) -> list[Run]:
    """The commands of a page, as shown there."""
    found: list[Run] = []
    for block in CONSOLE.findall(page):
        for line, shown in _prompts(block):
            if line == EXIT_CODE:
                found[-1] = found[-1]._replace(code=int(shown))
            else:
                found.append(Run(line, shown))
    return found


def run_again(command: str, folder: Path, *, apart: bool = False) -> Run:
    """Run ``tallystick … | head -9`` in a folder: in this process, or in one of its own."""
    cut = HEAD.search(command)
    name, *words = shlex.split(HEAD.sub("", command))
    if name != "tallystick":
        raise ValueError(f"a console block runs tallystick, not {name}")
    code, out, err = (_in_a_process if apart else _in_this_one)(words, folder)
    lines = _folded(COLOURS.sub("", out or err))
    shown = "".join(f"{line}\n" for line in lines[: int(cut[1]) if cut else None])
    return Run(command, shown, 0 if cut else code)


def rewritten(page: str, folder: Path) -> str:
    """A page with the outputs of now."""

    def block(found: re.Match[str]) -> str:
        again = [run_again(line, folder) for line, _ in _prompts(found[0]) if line != EXIT_CODE]
        return "".join(_written(run) for run in again)

    return with_addresses(_with_python(CONSOLE.sub(block, page)))


def with_addresses(page: str) -> str:
    """A page whose links to this repository and its site are those of pyproject.toml."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    owner = urls["Repository"].split("/")[-2]
    page = re.sub(r"(?<=//)(github|raw\.githubusercontent)\.com/[\w-]+/(?=tallystick\b)", rf"\1.com/{owner}/", page)
    return re.sub(r"https://[\w-]+\.github\.io/tallystick/", urls["Documentation"], page)


@contextlib.contextmanager
def examples() -> Iterator[Path]:
    """A copy of the examples, with the checkpoint that one of them writes."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "examples"
        shutil.copytree(EXAMPLES, folder)
        runpy.run_path(str(folder / "recital.py"))["write"](folder / "recital")
        yield folder


def _prompts(block: str) -> Iterator[tuple[str, str]]:
    """Each line that was typed, and what follows it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


def _folded(text: str) -> list[str]:
    """Lines that end between words, where a terminal would go on within one."""
    page = io.StringIO()
    for line in text.rstrip().splitlines():
        PlainText(page, WIDTH).print(Text(line.rstrip()))
    return page.getvalue().splitlines()


def _written(run: Run) -> str:
    code = f"$ {EXIT_CODE}\n{run.code}\n" if run.code else ""
    return f"$ {run.command}\n{run.shown}{code}"


def _in_a_process(words: list[str], folder: Path) -> tuple[int, str, str]:
    """What a process prints in a terminal as wide as a page."""
    import termios  # which Windows lacks

    ours, its = os.openpty()
    termios.tcsetwinsize(its, (24, WIDTH))
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "tallystick", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"},
        stdout=its,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(its)
    out = bytearray()
    with contextlib.suppress(OSError):  # Linux ends a closed terminal with EIO
        while piece := os.read(ours, 4096):
            out += piece
    os.close(ours)
    err = process.communicate()[1]
    return process.returncode, out.decode(), err


def _in_this_one(words: list[str], folder: Path) -> tuple[int, str, str]:
    out, err, modules = Terminal(), io.StringIO(), set(sys.modules)
    try:
        with contextlib.chdir(folder), terminal(out, WIDTH), contextlib.redirect_stderr(err):
            code = main(words)
    finally:
        for name in set(sys.modules) - modules:  # the user's own, of a folder that another run may not share
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
    return code, out.getvalue(), err.getvalue()


class _Given(doctest.DocTestRunner):
    """Keeps what each example gives, where that is not what the page shows."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.given: dict[doctest.Example, str] = {}

    def report_failure(self, out: object, test: object, example: doctest.Example, got: str) -> None:
        self.given[example] = re.sub(r"^$", "<BLANKLINE>", got.rstrip("\n"), flags=re.MULTILINE) + "\n" if got else ""

    def report_unexpected_exception(self, out: object, test: object, example: doctest.Example, exc_info: tuple) -> None:  # type: ignore[type-arg]
        exc_info[1].add_note(f">>> {example.source}")
        raise exc_info[1]


def _with_python(page: str) -> str:
    """A page with what its Python gives now: each block runs after those before it."""
    blocks = [doctest.DocTestParser().parse(block) for block in PYTHON.findall(page)]
    ran = [piece for block in blocks for piece in block if isinstance(piece, doctest.Example)]
    runner, again = _Given(), iter(blocks)
    runner.run(doctest.DocTest(ran, {"__name__": "page"}, "page", None, 0, ""), out=lambda text: None)
    return PYTHON.sub(lambda _: "".join(_piece(piece, runner.given) for piece in next(again)), page)


def _piece(piece: str | doctest.Example, given: dict[doctest.Example, str]) -> str:
    if isinstance(piece, str):
        return piece
    first, *more = piece.source.splitlines()
    typed = "".join(f"{line}\n" for line in (f">>> {first}", *(f"... {line}".rstrip() for line in more)))
    return typed + given.get(piece, piece.want)


def write(path: Path, folder: Path) -> bool:
    """Write a page, or the texts between a notebook's cells, with the outputs of now; whether that
    changes it.
    """
    before = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        notebook = nbformat.reads(before, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = rewritten(cell.source, folder)
        now = nbformat.writes(notebook) + "\n"
    else:
        now = rewritten(before, folder)
    path.write_text(now, encoding="utf-8")
    return now != before


if __name__ == "__main__":
    with examples() as folder:
        for page in map(Path, sys.argv[1:]):
            try:
                changed = write(page, folder)
            except Exception as error:
                error.add_note(f"on {page}")
                raise
            if changed:
                print(page)  # noqa: T201
