"""``tallystick survive``: run operations on a small model, and show which keep a tie."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command, add_format, add_source, print_json, settings_of
from tallystick.errors import BadInput

EXAMPLES = """\
Of a preset or a config a small model is built, with random weights and the config's flags; the model of a factory is
taken as it is, so let it build a small one.

examples:
  tallystick survive                                sixty operations on a small GPT-2
  tallystick survive gemma-2-2b                     the same on a small model of that type
  tallystick survive my_model:small                 on a model of your own
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "survive", "which operations keep a tie: each is run on a small model", EXAMPLES)
    add_source(command, without="a small GPT-2")
    add_format(command, "table", "json", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.live.survive import survive

    settings = settings_of(options.settings)
    if settings and options.source is None:
        raise BadInput("--set sets keys of a source: name one", code="conflicting-options")
    answer = survive(options.source, settings)
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.survival import show_survival
    from tallystick.report.table import console

    show_survival(answer, console(), style=options.format)
    return 0
