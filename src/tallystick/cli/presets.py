"""``tallystick presets``: the names that are known."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count
from tallystick.cli.options import add_command, add_format, print_json


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = add_command(commands, "presets", "the names that it knows, with their counts")
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.presets import PRESETS

    rows = []
    for name in PRESETS:
        ledger = count(name)
        rows.append(
            {
                "name": name,
                "architecture": ledger.architecture,
                "parameters": ledger.total,
                "active": ledger.totals["active"],
            }
        )
    if options.format == "json":
        print_json(rows)
        return 0
    from tallystick.report.presets import show_presets
    from tallystick.report.table import console

    show_presets(rows, console(), style=options.format)
    return 0
