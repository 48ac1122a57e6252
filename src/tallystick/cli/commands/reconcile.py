"""``tallystick reconcile``: find the counting convention that makes a claimed count true."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from tallystick import reconcile
from tallystick.cli.options import add_command, add_part, add_source, ledger_of, whole
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick reconcile gpt2 163M
  tallystick reconcile gpt2 123.59M                 the last digit is rounded
  tallystick reconcile ./checkpoint 6,738,415,616   exact to the last parameter
  tallystick reconcile mixtral-8x7b 12.9B --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "reconcile", EXAMPLES)
    add_source(command)
    command.add_argument("claim", metavar="CLAIM", help="published count: 124M, 6.7B, 1.5e9 or 123,550,272")
    add_part(command)
    command.add_argument(
        "--most", metavar="N", type=whole, default=3, help="number of explanations to show (default: 3)"
    )
    add_exit_code(command, "no way of counting gives the claim")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.most < 1:
        raise BadInput(f"--most {options.most} shows nothing: give a number from 1 on", code="bad-value")
    answer = reconcile(ledger_of(options), options.claim)
    explained = answer.explained
    answer = replace(answer, explanations=answer.explanations[: options.most])
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.charts.bars import draw_explanation
        from tallystick.report.reconcile import show_reconciliation

        picture = draw_explanation(answer, answer.explanations[0]) if options.format == "html" else ""
        print_answer(options.format, show_reconciliation, answer, picture=picture)
    return int(options.exit_code and not explained)
