"""``tallystick fit``: test whether a model fits on a device, and what would make it fit."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count, fit
from tallystick.cli.memory import add_run, run_of
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_format,
    add_source,
    device_given,
    print_json,
    settings_of,
)

EXAMPLES = """\
examples:
  tallystick fit llama-3-8b --device rtx4090 --sequence 8192        exit code 1 where it does not fit
  tallystick fit gpt2-xl --device 16GB --mode training
  tallystick fit ./checkpoint --device auto --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "fit", "whether a device holds a model, and what would make it fit", EXAMPLES)
    add_source(command)
    command.add_argument("--device", required=True, metavar="NAME", help=DEVICE_HELP)
    add_run(command)
    add_format(command, "table", "json", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    ledger = count(options.source, **settings_of(options.settings))
    answer = fit(ledger, device_given(options.device), **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.memory import show_fit
        from tallystick.report.table import console

        show_fit(answer, console(), style=options.format)
    return 0 if answer.fits else 1
