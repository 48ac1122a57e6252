"""In a terminal of any width each number of an answer is printed whole."""

from __future__ import annotations

import io
import json
import os
import random
import re
import sys
from types import SimpleNamespace
from typing import cast

import pytest
from rich.cells import cell_len
from rich.console import Console

from repository import ROOT
from rotating import some_by_commit
from tallystick.report.tables.cells import Column, Table
from tallystick.report.tables.narrow import broken, needed
from tallystick.report.tables.table import ENDLESS, draw
from tallystick.report.training import Follower
from tallystick.training.plan import Plan
from tallystick.training.state import Event

WIDTHS = (40, 60, 80, 100, 120)
WIDE = 400
COMMANDS = [
    ["count", "gpt2"],
    ["count", "gpt2", "--by", "dtype"],
    ["count", "llama-3.1-405b", "--by", "tensor", "--set", "num_hidden_layers=4"],  # the others are as wide
    ["count", "gpt2", "--by", "layer"],
    ["count", "gpt2", "--by", "module"],
    ["count", "deepseek-v3", "--depth", "4"],
    ["formula", "gpt2", "--steps"],
    ["compare", "gpt2", "gpt2-medium", "--tensors"],
    ["reconcile", "gpt2", "162M"],
    ["reconcile", "llama-3.1-405b", "405.9B"],
    ["check", str(ROOT / "examples" / "gpt2_by_hand.md"), "--against", "gpt2"],
    ["memory", "llama-3-8b", "--mode", "training"],
    ["memory", "llama-3-8b", "--sequence", "1k:8k"],
    ["memory", "palm-540b", "--sequence", "1k:8k", "--mode", "training", "--device", "h100"],
    ["memory", "llama-3-8b", "--dtype", "bf16,int8,int4", "--device", "rtx4090"],
    ["fit", "llama-3-8b", "--device", "h100", "--sequence", "8192"],
    ["fit", "gpt2"],
    ["fit", "llama-3.1-405b", "--dtype", "bf16,int4", "--no-exit-code"],
    ["serve", "llama-3.1-8b", "--device", "h100", "--max-model-len", "8k"],
    ["compute", "llama-3.1-405b", "--explain"],
    ["compute", "gpt2", "--tokens", "15T", "--device", "h100"],
    ["ties", "gpt2"],
    ["presets"],
    ["devices"],
    ["dtypes"],
]
IN_GIGABYTES = ("--sequence", "--dtype")  # options of tables that are in GB alone where there is less room
# All commands in one process: starting one takes longer than its answer, and that longer than to
# draw it, which each does at all widths.
RUN = """
import fcntl, json, struct, sys, termios
from tallystick.cli import output
from tallystick.cli.main import main
print_answer, widths, commands = output.print_answer, *json.loads(sys.argv[1])
def at_each_width(*answer, **options):
    for width in widths:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        print_answer(*answer, **options)
        print("\\f")
output.print_answer = at_each_width
for words in commands:
    main(words)
    if "json" in words:
        print("\\f")
"""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _in_a_terminal(widths: list[int], commands: list[list[str]]) -> list[str]:
    """What each command prints in a real terminal of each width, or as JSON once, without its
    colours.
    """
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    process, terminal = pty.fork()
    if not process:
        # Not execv: readline, which pytest imports, sets COLUMNS where Python's os.environ does not
        # see it.
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        env |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
        os.execve(sys.executable, [sys.executable, "-c", RUN, json.dumps([widths, commands])], env)
    printed = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            printed += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, printed[-2000:]
    return re.sub(r"\x1b\[[0-9;]*m", "", printed.decode()).replace("\r", "").split("\f\n")


@pytest.fixture(scope="module")
def printed() -> dict[tuple[int, int], str]:
    """By width and place in `COMMANDS`; under 0 the JSON of each."""
    commands = [*COMMANDS, *([*words, "--format", "json"] for words in COMMANDS)]
    found = iter(_in_a_terminal([WIDE, *WIDTHS], commands))
    tables = {(place, width): next(found) for place in range(len(COMMANDS)) for width in (WIDE, *WIDTHS)}
    return tables | {(place, 0): next(found) for place in range(len(COMMANDS))}


def _numbers(answer: object) -> set[str]:
    """The whole numbers of an answer as a person reads them and as a program does."""
    if isinstance(answer, dict | list):
        inside = answer.values() if isinstance(answer, dict) else answer
        return set().union(*map(_numbers, inside)) if inside else set()
    return {f"{abs(answer):,}", str(abs(answer))} if isinstance(answer, int) and not isinstance(answer, bool) else set()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", range(len(COMMANDS)), ids=[" ".join(words[:2]) for words in COMMANDS])
def test_a_terminal_shows_every_number_whole(printed: dict[tuple[int, int], str], place: int, width: int) -> None:
    wide, narrow = (set(_NUMBER.findall(printed[place, columns])) for columns in (WIDE, width))
    wanted = _numbers(json.loads(printed[place, 0])) & wide
    assert wanted
    assert wanted <= narrow
    # Nor does a piece of a number pass for another: what is new is the same bytes in GB alone.
    new = narrow - wide
    assert (
        not new if not {*IN_GIGABYTES} & {*COMMANDS[place]} else all(re.fullmatch(r"[\d,]+\.\d{3}", one) for one in new)
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", range(len(COMMANDS)), ids=[" ".join(words[:2]) for words in COMMANDS])
def test_a_table_is_no_wider_than_its_terminal(printed: dict[tuple[int, int], str], place: int, width: int) -> None:
    tables = re.findall(r"^ .*\n ?─+ *\n(?: \S.*\n)+", printed[place, width], re.MULTILINE)
    assert not [line for table in tables for line in table.split("\n") if len(line) > width]


def _drawn(table: Table, width: int, style: str = "table") -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, soft_wrap=True)
    draw(table, out, style=style)
    drawn: str = out.file.getvalue()  # type: ignore[attr-defined]
    return drawn


def _table(seed: int) -> Table:
    draws = random.Random(seed)

    def cell(number: bool) -> str:
        size = draws.randrange(10 ** draws.randrange(1, 16))
        if number:
            return draws.choice(
                [f"{size:,}", f"{size:+,}", f"{size / 1000:,.3f}", "", " × ".join(map(str, [size, 7, 4096]))]
            )
        words = [
            "model.layers.",
            "η",
            "漢字",
            "in",
            "weights_of",
            "·",
            f"{size:,}",
            f"h.{size}.",
            "×",
            "(rounded)",
            f"{size / 7:.3f}%",
        ]
        return " ".join(draws.choices(words, k=draws.randrange(9)))

    columns = [
        Column(draws.choice(["what", "parameters", "used by", "GiB"]), draws.random() < 0.5)
        for _ in range(draws.randrange(1, 7))
    ]
    rows = [[cell(column.number) for column in columns] for _ in range(draws.randrange(1, 9))]
    shares = [draws.random() for _ in rows] if draws.random() < 0.5 else []
    total = [cell(column.number) for column in columns] if draws.random() < 0.5 else []
    return Table(columns, rows, shares, total)


@pytest.mark.parametrize("seed", some_by_commit(range(60), 20))
def test_no_table_loses_a_number_at_any_width(seed: int) -> None:
    table = _table(seed)
    whole = sorted(_NUMBER.findall(" ".join(cell for row in [*table.rows, table.total] for cell in row)))
    for width in (1, 13, 20, *range(30, 130, 7)):
        assert sorted(_NUMBER.findall(_drawn(table, width))) == whole, width


def test_text_that_may_be_folded_is_all_there() -> None:
    name = "transformer.encoder.layers.17.self_attention.query_key_value.weight"
    for width in range(4, 80):
        lines = broken(name, width)
        assert "".join(lines) == name
        assert all(cell_len(line) <= width for line in lines)


def test_a_page_and_a_program_get_every_cell_on_one_line() -> None:
    table = Table(
        [Column("tensor"), Column("parameters", True)], [["wte" * 40, "38,597,376"]], total=["total", "38,597,376"]
    )
    for style in ("markdown", "csv"):
        assert "wte" * 40 in _drawn(table, 40, style)
        assert _drawn(table, 40, style) == _drawn(table, ENDLESS, style)


def test_columns_that_repeat_another_go_before_text_is_folded_to_bits() -> None:
    rows = [["weights of the language model in bfloat16", "16,060,522,496", "16.061", "14.958"]]
    table = Table([Column("part"), *(Column(name, True) for name in ("bytes", "GB", "GiB"))], rows)
    table = table._replace(narrower=[table.only("part", "bytes", "GB"), table.only("part", "bytes")])
    assert "14.958" in _drawn(table, needed([16, 14, 6, 6]))
    assert "14.958" not in _drawn(table, needed([16, 14, 6, 6]) - 1)
    assert "16.061" in _drawn(table, needed([16, 14, 6, 6]) - 1)
    assert "GB" not in _drawn(table, needed([16, 14, 6]) - 1)
    assert "16,060,522,496" in _drawn(table, 20)


def test_a_bar_takes_what_the_numbers_leave() -> None:
    table = Table([Column("role"), Column("parameters", True)], [["mlp", "100"], ["norm", "50"]], [1.0, 0.5])
    widths = {
        width: [line.count("█") for line in _drawn(table, width).split("\n") if "█" in line] for width in (80, 36, 24)
    }
    assert widths == {80: [24, 12], 36: [14, 7], 24: []}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_line_of_a_step_in_training_is_whole(width: int) -> None:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    follower = Follower(out)
    show = follower.begin(cast(Plan, SimpleNamespace(steps=1_000_000, step=0)))
    show(Event("step", 123_456, {"loss": 10.8249, "speed": 1_234_567.0, "mfu": 0.45}))
    follower.end()
    printed: str = out.file.getvalue()  # type: ignore[attr-defined]
    assert {"123,456", "1,000,000", "10.8249", "1,234,567", "45"} <= set(_NUMBER.findall(printed))
