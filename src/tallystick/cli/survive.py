"""``tallystick survive``: which operations keep a tie."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command, add_format, print_json


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = add_command(commands, "survive", "which operations keep a tie: each is run on a small model")
    add_format(command, "table", "json", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.live.survive import survive

    answer = survive()
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.survival import show_survival
    from tallystick.report.table import console

    show_survival(answer, console(), style=options.format)
    return 0
