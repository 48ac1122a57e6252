"""``tallystick formula``: derive the closed form of a count."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import formula
from tallystick.cli.options import add_command, add_part, add_source, ledger_of, setting, settings_of
from tallystick.cli.output import TABLES, add_format, print_answer, print_json

EXAMPLES = """\
examples:
  tallystick formula gpt2
  tallystick formula config.json --steps            each product, in numbers
  tallystick formula gpt2 --steps --by block        one layer, and all
  tallystick formula deepseek-v3 --latex
  tallystick formula my_model:build --vary n_embd=64:256 --vary n_layer=1:4
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "formula", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--steps", action="store_true", help="show each product with its numbers")
    command.add_argument(
        "--by", choices=("tensor", "block"), default=None, help="with --steps: each tensor, or one block and its sum"
    )
    command.add_argument("--latex", action="store_true", help="print only LaTeX; with --steps, each step")
    command.add_argument(
        "--vary",
        metavar="ARG=VALUES",
        action="append",
        type=setting,
        help="values of a factory's argument: n_embd=64:256, n_layer=1:9:2, n_head=1,2,4, bias=true,false; repeatable",
    )
    add_format(command, *TABLES, "text")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    source, settings = options.source, settings_of(options.settings)
    if options.part:
        source, settings = ledger_of(options), {}
    varied = None if options.vary is None else dict(word.split("=", 1) for word in options.vary)
    answer = formula(source, real=options.real, vary=varied, **settings)
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.formula import show_formula

    style = "table" if options.format == "text" else options.format
    steps, by = options.steps or options.by is not None, options.by or "tensor"
    print_answer(style, show_formula, answer, steps=steps, latex=options.latex, by=by)
    return 0
