"""``tallystick ties``: find tied tensors and lost ties, and write a repaired copy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tallystick import ties
from tallystick.cli.options import add_command, add_format, add_source, print_json, settings_of
from tallystick.errors import BadInput, visible

EXAMPLES = """\
examples:
  tallystick ties ./checkpoint                      exit code 1 when a tie is lost, 0 when consistent or unknown
  tallystick ties my_model:build --format json
  tallystick ties ./checkpoint --fix ./mended       a copy with the tie stored once, or the config set right
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "ties", "what is shared, what should be, and what was lost", EXAMPLES)
    add_source(command)
    command.add_argument("--fix", metavar="OUT", help="write a mended copy of a checkpoint's folder there")
    command.add_argument(
        "--as", choices=("tied", "untied"), dest="as_", help="what a mended copy is to be where the values differ"
    )
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.as_ and options.fix is None:
        raise BadInput("--as says what --fix is to write: name a folder with --fix", code="conflicting-options")
    if options.fix is not None and "://" in options.source:
        raise BadInput(f"{options.source} is not on this machine: --fix copies a folder that is", code="unsupported")
    answer = ties(options.source, **settings_of(options.settings))
    if options.fix is not None:
        from tallystick.sources.checkpoint.repair import repair

        for line in repair(Path(options.source), Path(options.fix), answer.problems, as_=options.as_):
            print(visible(line))  # noqa: T201
        return 0
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.table import console
        from tallystick.report.ties import show_ties

        show_ties(answer, console(), style=options.format)
    return 1 if answer.verdict in ("contradiction", "lost") else 0
