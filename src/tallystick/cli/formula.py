"""``tallystick formula``: derive the closed form of a count."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count, formula
from tallystick.cli.options import add_command, add_format, add_part, add_source, print_json, settings_of
from tallystick.errors import BadInput, quoted

EXAMPLES = """\
examples:
  tallystick formula gpt2
  tallystick formula config.json --steps            each product with its numbers
  tallystick formula deepseek-v3 --latex
  tallystick formula my_model:build --vary n_embd=64:256 n_layer=1:4     of a model that nobody described
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "formula", "the closed form of the count, in the config's keys", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--steps", action="store_true", help="show each product with its numbers")
    command.add_argument("--latex", action="store_true", help="print LaTeX alone")
    command.add_argument(
        "--vary",
        metavar="ARG=VALUES",
        action="extend",
        nargs="+",
        help="arguments of a factory and the values at which to build it: n_embd=64:256 n_layer=1:9:2 n_head=1,2,4 bias=true,false",
    )
    add_format(command, "text", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    source, settings = options.source, settings_of(options.settings)
    if options.part:
        source, settings = count(source, part=options.part, **settings), {}
    answer = formula(source, vary=_varied(options.vary), **settings)
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.formula import show_formula
    from tallystick.report.table import console

    show_formula(answer, console(), steps=options.steps, latex=options.latex)
    return 0


def _varied(words: list[str] | None) -> dict[str, str] | None:
    if words is None:
        return None
    varied = {}
    for word in words:
        argument, equals, values = word.partition("=")
        if not equals or not argument:
            raise BadInput(
                f"--vary {quoted(word)} is not ARG=VALUES, such as n_layer=1:4 (SOURCE goes before --vary)",
                code="bad-value",
            )
        varied[argument] = values
    return varied
