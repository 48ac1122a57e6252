"""``tallystick reconcile``: find the counting convention that makes a claimed count true."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from tallystick import reconcile
from tallystick.cli.options import add_command, add_format, add_source, print_json, settings_of, whole
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick reconcile gpt2 163M
  tallystick reconcile gpt2 123.59M                 the last digit is taken as rounded
  tallystick reconcile ./checkpoint 6,738,415,616   to the last parameter
  tallystick reconcile mixtral-8x7b 12.9B --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "reconcile", "which way of counting makes a claimed count true", EXAMPLES)
    add_source(command)
    command.add_argument("claim", metavar="CLAIM", help="124M, 6.7B, 1.5e9, 0.5 billion or 123,550,272")
    command.add_argument("--most", metavar="N", type=whole, default=3, help="show so many explanations (default: 3)")
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.most < 1:
        raise BadInput(f"--most {options.most} shows nothing: give a number from 1 on", code="bad-value")
    answer = reconcile(options.source, options.claim, **settings_of(options.settings))
    answer = replace(answer, explanations=answer.explanations[: options.most])
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.reconcile import show_reconciliation
    from tallystick.report.table import console

    show_reconciliation(answer, console(), style=options.format)
    return 0
