"""``tallystick survive``: run operations on a small model, and show which keep a tie."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command, add_source, settings_of
from tallystick.cli.output import add_format, print_answer, print_json
from tallystick.errors import BadInput

EXAMPLES = """\
A preset or config gives a small model with random weights and the config's
flags. A factory's model is used as it is: let it build a small one.

examples:
  tallystick survive                                60 operations, small GPT-2
  tallystick survive gemma-2-2b
  tallystick survive my_model:small
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "survive", EXAMPLES)
    add_source(command, without="a small GPT-2")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.live.survive import survive

    settings = settings_of(options.settings)
    if settings and options.source is None:
        raise BadInput("--set overrides values of a source: name one", code="conflicting-options")
    answer = survive(options.source, settings)
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.survival import show_survival

    print_answer(options.format, show_survival, answer, title="Which operations keep a tie")
    return 0
