"""``tallystick fit``: test whether a model fits on a device, and what would make it fit."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import fit
from tallystick.cli.options import DEVICE_HELP, add_command, add_part, add_source, device_given, ledger_of
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.cli.run_options import add_run, run_of
from tallystick.core.ledger import Ledger

EXAMPLES = """\
examples:
  tallystick fit llama-3-8b                         all devices, three dtypes
  tallystick fit llama-3-8b --device rtx4090 --sequence 8192
  tallystick fit gpt2-xl --device 16GB --mode training
  tallystick fit ./checkpoint --device auto --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "fit", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--device", metavar="NAME", help=f"{DEVICE_HELP} (default: list all devices)")
    add_run(command, more_dtypes="; several without --device: bf16,int4")
    add_exit_code(command, "it does not fit", default=True)
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    ledger = ledger_of(options)
    if options.device is None:
        return _on_all(ledger, options)
    answer = fit(ledger, device_given(options.device), **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.fit import show_fit

        print_answer(options.format, show_fit, answer, title=answer.asked.source)
    return int(options.exit_code and not answer.fits)


def _on_all(ledger: Ledger, options: argparse.Namespace) -> int:
    from tallystick.answers.fit_all import fit_all

    given = run_of(options)
    dtypes = given.pop("dtype", "")
    answer = fit_all(ledger, dtypes.split(",") if dtypes else (), **given)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.fit import show_fit_all

        print_answer(options.format, show_fit_all, answer)
    return int(options.exit_code and not answer.fits)
