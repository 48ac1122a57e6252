"""``tallystick dtypes``: list number formats of weights and KV cache."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command
from tallystick.cli.output import add_format, print_answer, print_json

EXAMPLES = """\
examples:
  tallystick dtypes
  tallystick memory llama-3-8b --dtype q4_k_m --kv-dtype fp8
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "dtypes", EXAMPLES)
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.answers.memory.number_formats import known_formats

    found = known_formats()
    if options.format == "json":
        print_json([one._asdict() for one in found])
        return 0
    from tallystick.report.names import show_dtypes

    print_answer(options.format, show_dtypes, found, title="Number formats")
    return 0
