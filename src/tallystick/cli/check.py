"""``tallystick check``: check a derivation of a parameter count, line by line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tallystick import check
from tallystick.cli.options import add_command, add_format, add_settings, print_json, print_page, settings_of
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick check derivation.md --against gpt2     exit code 1 when something is wrong
  tallystick check paper.tex --against config.json --format json
  tallystick check notes.txt                        the arithmetic alone
  pbpaste | tallystick check - --against gpt2
  tallystick check notes.md --against gpt2 --format html > notes.html   the text, marked up
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "check", "which lines of a derivation are wrong, and what it leaves out", EXAMPLES)
    command.add_argument("file", metavar="FILE", help="Markdown, LaTeX or plain text with equations in it; - is stdin")
    command.add_argument(
        "--against", metavar="SOURCE", help="the model that it is about: what `tallystick count` takes"
    )
    add_settings(command, "--set", "config keys to set over those of the model: --set n_layer=24", to="settings")
    add_format(command, "table", "json", "markdown", "html")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.settings and options.against is None:
        raise BadInput(
            "--set changes the model that a text is checked against: name it with --against", code="conflicting-options"
        )
    answer = check(Path(options.file), against=options.against, **settings_of(options.settings))
    if options.format == "json":
        print_json(answer.to_dict())
    elif options.format == "html":
        from tallystick.report.page import check_page

        print_page(check_page(answer))
    else:
        from tallystick.report.check import show_check
        from tallystick.report.table import console

        show_check(answer, console(), style=options.format)
    return 0 if answer.correct else 1
