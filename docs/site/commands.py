"""The page of the commands, from their parsers."""

from __future__ import annotations

import argparse
from functools import partial

from tallystick.cli.parser import build_parser

WIDTH = 100  # of a command's usage
TOP = """\
# Commands

Made from the parsers: what `tallystick COMMAND --help` says. Exit codes: 0 done, 1 a check that was asked for failed, 2 bad input,
with one line that says what, where, and what to do.
"""


def commands_page() -> str:
    """Every command, its arguments and its examples, in Markdown."""
    actions = build_parser()._actions
    (commands,) = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    return "\n".join([TOP, *(_section(name, command) for name, command in commands.items())])


def _section(name: str, command: argparse.ArgumentParser) -> str:
    command.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
    command.color = False  # which Python 3.14 has in a terminal
    usage = "\n".join(line[len("usage: ") :] for line in command.format_usage().splitlines())
    rows = [_row(action) for action in command._actions if action.dest != "help"]
    lines = [f"## {name}", "", command.description, "", *_block(usage), "| argument | |", "| --- | --- |", *rows, ""]
    if command.epilog:
        _, *examples = command.epilog.splitlines()
        lines += _block("\n".join(line.strip() for line in examples))
    return "\n".join(lines)


def _block(text: str) -> list[str]:
    return ["```text", text, "```", ""]


def _row(action: argparse.Action) -> str:
    """An argument: how it is written, and what it does."""
    formatter = argparse.HelpFormatter("")
    if action.option_strings:
        values = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
        name = f"{', '.join(action.option_strings)} {values}".strip()
    else:
        name = str(action.metavar or action.dest)
    cells = (f"`{name}`", formatter._expand_help(action) if action.help else "")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
