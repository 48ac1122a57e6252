"""``tallystick count``: count parameters, and show where they are."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count
from tallystick.cli.options import add_command, add_format, add_part, add_source, print_json, print_page, settings_of

EXAMPLES = """\
examples:
  tallystick count llama-3-8b
  tallystick count gpt2 --set tie_word_embeddings=false n_layer=24
  tallystick count config.json --by layer
  tallystick count ./checkpoint --by tensor --format csv
  tallystick count model.safetensors --format json
  tallystick count hf://org/name@main               a repository of the hub, by its headers alone
  tallystick count gpt2 --format html > gpt2.html   a page of its own, with a picture
  tallystick count my_model:build                   an nn.Module that your own code builds
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "count", "how many parameters, and where", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--by", choices=("role", "layer", "tensor", "dtype"), help="what to break the count down by")
    add_format(command, "table", "json", "csv", "markdown", "html")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    ledger = count(options.source, part=options.part, **settings_of(options.settings))
    if options.format == "json":
        print_json(ledger.to_dict(by=options.by))
        return 0
    if options.format == "html":
        from tallystick.report.page import count_page

        print_page(count_page(ledger, by=options.by or "role"))
        return 0
    from tallystick.report.count import show_count
    from tallystick.report.table import console

    show_count(ledger, console(), by=options.by or "role", style=options.format)
    return 0
