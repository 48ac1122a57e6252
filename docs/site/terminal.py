"""The picture of a terminal: two commands as they print in one, in light and in dark.

python docs/site/terminal.py docs/terminal.svg docs/terminal-dark.svg
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

from tallystick.cli.main import main

COMMANDS = ("tallystick count gpt2", "tallystick compare llama-2-7b llama-3-8b")
WIDTH = 100
LIGHT = TerminalTheme(
    (250, 250, 248),
    (36, 41, 47),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (77, 45, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
LOADED = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)  # rich's picture asks a host for a font


class Terminal(io.StringIO):
    """Keeps what a command prints in a terminal, colours included."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        """Say that it is a terminal: then colours and bars are drawn."""
        return True


@contextlib.contextmanager
def terminal(out: Terminal, width: int) -> Iterator[None]:
    """Print to a terminal of `width` columns."""
    settings = {"COLUMNS": str(width), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with mock.patch.dict(os.environ, settings), contextlib.redirect_stdout(out):
        yield


def printed(command: str) -> str:
    """What a command prints in a terminal, colours included."""
    out = Terminal()
    with terminal(out, WIDTH):
        main(command.split()[1:])
    return out.getvalue()


def picture(theme: TerminalTheme) -> str:
    """Both commands, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for number, command in enumerate(COMMANDS):
        console.print(Text.assemble("\n" if number else "", ("$ ", "cyan"), (command, "bold")))
        console.print(Text.from_ansi(printed(command).rstrip()))
    console.print()  # without, the picture ends in the last line
    drawn = console.export_svg(title="", theme=theme, unique_id="terminal")
    drawn = LOADED.sub("", drawn).replace("rgba(255,255,255,0.35)", "rgba(128,128,128,0.5)")
    drawn = drawn.replace("Fira Code, monospace", FONTS).replace("Fira Code", "monospace")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines() if line.strip())


PICTURES = {"terminal.svg": LIGHT, "terminal-dark.svg": DIMMED_MONOKAI}

if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        place.write_text(picture(PICTURES[place.name]), encoding="utf-8")
