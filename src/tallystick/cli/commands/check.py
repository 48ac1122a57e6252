"""``tallystick check``: check a derivation of a parameter count, line by line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tallystick import check
from tallystick.cli.options import SET_HELP, add_command, add_part, add_real, add_settings, ledger_of
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json, print_page
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick check derivation.md --against gpt2
  tallystick check paper.tex --against config.json --format json
  tallystick check notes.txt                        the arithmetic alone
  pbpaste | tallystick check - --against gpt2
  tallystick check notes.md --against gpt2 --format html > notes.html
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "check", EXAMPLES)
    command.add_argument("file", metavar="FILE", help="Markdown, LaTeX or plain text with equations; - is stdin")
    command.add_argument("--against", metavar="SOURCE", help="model to check the derivation against: any SOURCE")
    add_settings(command, "--set", f"override {SET_HELP}", to="settings")
    add_part(command)
    add_real(command)
    add_exit_code(command, "something is wrong", default=True)
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if (options.settings or options.part) and options.against is None:
        raise BadInput(
            "--set and --part change the model that a text is checked against: name it with --against",
            code="conflicting-options",
        )
    against = None if options.against is None else ledger_of(options, options.against)
    answer = check(Path(options.file), against=against)
    if options.format == "json":
        print_json(answer.to_dict())
    elif options.format == "html":
        from tallystick.report.html.page import check_page

        print_page(check_page(answer))
    else:
        from tallystick.report.check import show_check

        print_answer(options.format, show_check, answer)
    return int(options.exit_code and not answer.correct)
