"""``tallystick compare``: explain why one model has more parameters than another."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import compare, count
from tallystick.cli.options import SET_HELP, SOURCE_HELP, add_command, add_part, add_real, add_settings, settings_of
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json, print_page

EXAMPLES = """\
examples:
  tallystick compare gpt2 my_model:build
  tallystick compare llama-2-7b llama-3-8b --tensors
  tallystick compare llama-2-7b llama-3-8b --format html > difference.html
  tallystick compare gpt2 gpt2 --set-b tie_word_embeddings=false
  tallystick compare ./before ./after --exit-code
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "compare", EXAMPLES)
    command.add_argument("a", metavar="A", help=SOURCE_HELP)
    command.add_argument("b", metavar="B", help="the other model, named as A is")
    add_settings(command, "--set", f"override, in both, {SET_HELP}", to="both")
    add_settings(command, "--set-a", "override a value of A only; repeatable", to="of_a")
    add_settings(command, "--set-b", "override a value of B only; repeatable", to="of_b")
    add_part(command)
    add_real(command)
    command.add_argument("--tensors", action="store_true", help="list the tensors that differ, equal layers together")
    add_exit_code(command, "the parameters differ")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    both = settings_of(options.both)
    a, b = (
        count(source, part=options.part, real=options.real, **{**both, **settings_of(own)})
        for source, own in ((options.a, options.of_a), (options.b, options.of_b))
    )
    answer = compare(a, b)
    if options.format == "json":
        print_json(answer.to_dict())
    elif options.format == "html":
        from tallystick.report.html.page import compare_page

        print_page(compare_page(answer))
    else:
        from tallystick.report.compare import show_compare

        print_answer(options.format, show_compare, answer, tensors=options.tensors)
    return int(options.exit_code and answer.different)
