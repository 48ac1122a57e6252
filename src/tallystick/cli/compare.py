"""``tallystick compare``: explain why one model has more parameters than another."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import compare, count
from tallystick.cli.options import (
    SOURCE_HELP,
    add_command,
    add_format,
    add_real,
    add_settings,
    print_json,
    print_page,
    settings_of,
)

EXAMPLES = """\
examples:
  tallystick compare gpt2 my_model:build            what your code made of it
  tallystick compare llama-2-7b llama-3-8b --tensors
  tallystick compare llama-2-7b llama-3-8b --format html > difference.html
  tallystick compare gpt2 gpt2 --set-b tie_word_embeddings=false
  tallystick compare ./before ./after --exit-code   exit code 1 when a parameter is more or less
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "compare", "why one model has more parameters than another", EXAMPLES)
    command.add_argument("a", metavar="A", help=SOURCE_HELP)
    command.add_argument("b", metavar="B", help="the same")
    add_real(command)
    add_settings(command, "--set", "config keys to set over both, or arguments of both factories", to="both")
    add_settings(command, "--set-a", "the same for A alone", to="of_a")
    add_settings(command, "--set-b", "the same for B alone: --set-b n_layer=24 n_embd=1024", to="of_b")
    command.add_argument("--tensors", action="store_true", help="list the tensors that differ, all layers at once")
    command.add_argument("--exit-code", action="store_true", help="exit with 1 when a parameter is more or less")
    add_format(command, "table", "json", "csv", "markdown", "html")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    both = settings_of(options.both)
    answer = compare(
        count(options.a, **{**both, **settings_of(options.of_a)}),
        count(options.b, **{**both, **settings_of(options.of_b)}),
    )
    if options.format == "json":
        print_json(answer.to_dict())
    elif options.format == "html":
        from tallystick.report.page import compare_page

        print_page(compare_page(answer))
    else:
        from tallystick.report.compare import show_compare
        from tallystick.report.table import console

        show_compare(answer, console(), tensors=options.tensors, style=options.format)
    return 1 if options.exit_code and answer.different else 0
