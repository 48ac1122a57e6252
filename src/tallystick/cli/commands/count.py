"""``tallystick count``: count parameters, and show where they are."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command, add_part, add_source, ledger_of, whole
from tallystick.cli.output import add_format, print_answer, print_json, print_page
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick count llama-3-8b
  tallystick count gpt2 --set tie_word_embeddings=false --set n_layer=24
  tallystick count deepseek-v3 --depth 3            module tree, layers folded
  tallystick count ./checkpoint --by tensor --format csv
  tallystick count org/name                         from the hub, headers only
  tallystick count hf://org/name@main
  tallystick count gpt2 --format html > gpt2.html   a page with a picture
  tallystick count my_model:build                   your own nn.Module
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "count", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument(
        "--by",
        choices=("role", "layer", "module", "tensor", "dtype"),
        help="how to break the count down (default: role); module: a tree, equal layers folded",
    )
    command.add_argument("--depth", metavar="N", type=whole, help="levels of the module tree (implies --by module)")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    by, depth = options.by, options.depth
    if depth is not None:
        if by not in (None, "module") or depth < 1:
            raise BadInput("--depth is a number of levels from 1 on, of --by module", code="conflicting-options")
        by = "module"
    ledger = ledger_of(options)
    if options.format == "json":
        print_json(ledger.to_dict(by=by, depth=depth))
    elif options.format == "html":
        from tallystick.report.html.page import count_page

        print_page(count_page(ledger, by=by or "role", depth=depth))
    else:
        from tallystick.report.count import show_count

        print_answer(options.format, show_count, ledger, by=by or "role", depth=depth)
    return 0
