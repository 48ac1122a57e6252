"""``tallystick formula``: the closed form of a count."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import formula
from tallystick.cli.options import add_command, add_format, add_source, print_json, settings_of

EXAMPLES = """\
examples:
  tallystick formula gpt2
  tallystick formula config.json --steps            each product with its numbers
  tallystick formula deepseek-v3 --latex
"""


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = add_command(commands, "formula", "the closed form of the count, in the config's keys", EXAMPLES)
    add_source(command)
    command.add_argument("--steps", action="store_true", help="show each product with its numbers")
    command.add_argument("--latex", action="store_true", help="print LaTeX alone")
    add_format(command, "text", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    answer = formula(options.source, **settings_of(options.settings))
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.formula import show_formula
    from tallystick.report.table import console

    show_formula(answer, console(), steps=options.steps, latex=options.latex)
    return 0
