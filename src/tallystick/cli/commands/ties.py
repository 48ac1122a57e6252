"""``tallystick ties``: find tied tensors and lost ties, and write a repaired copy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from tallystick import ties
from tallystick.cli.options import add_command, add_part, add_source, settings_of
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.errors import BadInput, visible

EXAMPLES = """\
examples:
  tallystick ties ./checkpoint
  tallystick ties my_model:build --format json
  tallystick ties ./checkpoint --fix ./repaired     a copy with one tied tensor
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "ties", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--fix", metavar="OUT", help="write a repaired copy of the checkpoint to OUT")
    command.add_argument(
        "--as", choices=("tied", "untied"), dest="as_", help="what the repaired copy is, if the values differ"
    )
    add_exit_code(command, "a tie is lost", default=True)
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.as_ and options.fix is None:
        raise BadInput("--as says what --fix writes: name a folder with --fix", code="conflicting-options")
    if options.fix is not None and "/" in options.source and not os.path.exists(options.source):
        raise BadInput(f"{options.source} is not on this machine: --fix copies a folder that is", code="unsupported")
    if options.fix is not None and options.part:
        raise BadInput("--fix copies a whole checkpoint: leave out --part", code="conflicting-options")
    answer = ties(options.source, part=options.part, **settings_of(options.settings))
    if options.fix is not None:
        from tallystick.sources.checkpoint.repair import repair

        for line in repair(Path(options.source), Path(options.fix), answer.problems, as_=options.as_):
            print(visible(line))  # noqa: T201
        return 0
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.ties import show_ties

        print_answer(options.format, show_ties, answer)
    return int(options.exit_code and answer.verdict in ("contradiction", "lost"))
