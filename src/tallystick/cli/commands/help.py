"""``tallystick help``: help for a command."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from tallystick.cli.commands import COMMANDS
from tallystick.cli.options import add_command
from tallystick.cli.parser import build_parser, top_help, unknown_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "help")
    command.add_argument("about", metavar="COMMAND", nargs="?", help="default: list all commands")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.about is None:
        print(top_help(), end="")  # noqa: T201
        return 0
    if options.about not in COMMANDS:
        raise unknown_command(options.about)
    with suppress(SystemExit):  # it has printed
        build_parser(options.about).parse_args([options.about, "--help"])
    return 0
