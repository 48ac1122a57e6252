"""``tallystick devices``: list the devices that are known by name, with their figures."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command
from tallystick.cli.output import add_format, print_answer, print_json
from tallystick.errors import BadInput, nearest, quoted

EXAMPLES = """\
examples:
  tallystick devices
  tallystick devices rtx
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "devices", EXAMPLES)
    command.add_argument("words", metavar="WORD", nargs="*", help="only names with these words")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.answers.devices import DEVICES

    found = [one for name, one in DEVICES.items() if all(word.lower() in name for word in options.words)]
    if not found:
        words = " ".join(options.words)
        raise BadInput(f"no device has {quoted(words)} in its name{nearest(words, DEVICES)}", code="unknown-name")
    if options.format == "json":
        print_json([one._asdict() for one in found])
        return 0
    from tallystick.report.names import show_devices

    print_answer(options.format, show_devices, found, title="Devices")
    return 0
