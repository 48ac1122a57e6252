"""The pages of the commands: a table of all, and each command's options, from their parsers."""

from __future__ import annotations

import argparse
from functools import cache, partial

from tallystick.cli.main import build_parser

WIDTH = 88  # of a command's usage
TOP = """\
# Commands

What each command answers. SOURCE is a preset, a config, a checkpoint, an address or a module: [Sources](../sources.md).

| command | answers |
| --- | --- |
"""
CODES = """
Exit codes: 0 done, 1 a check that was asked for failed, 2 bad input. Bad input is one line: what is wrong, where, and what to do. `--format json`
is for programs: [the keys of each answer](../json.md).
"""


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    actions = build_parser()._actions
    (found,) = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(found)


def index_page() -> str:
    """The table of the commands, in Markdown."""
    rows = [f"| [`{name}`]({name}.md) | {command.description or ''} |\n" for name, command in commands().items()]
    return "".join([TOP, *rows, CODES])


def options_of(command: argparse.ArgumentParser) -> str:
    """A command's usage, options and examples, as sections of its page."""
    command.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
    command.color = False  # which Python 3.14 has in a terminal
    usage = "\n".join(line[len("usage: ") :] for line in command.format_usage().splitlines())
    rows = [_row(action) for action in command._actions if action.dest != "help"]
    lines = ["", "## Options", "", *_block(usage)]
    if rows:
        lines += ["| option | meaning |", "| --- | --- |", *rows, ""]
    if command.epilog:
        _, *examples = command.epilog.splitlines()
        lines += ["## More examples", "", *_block("\n".join(line.strip() for line in examples))]
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
