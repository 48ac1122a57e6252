"""``tallystick presets``: list the models that are known by name."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count
from tallystick.cli.options import add_command
from tallystick.cli.output import add_format, print_answer, print_json
from tallystick.errors import BadInput, nearest, quoted

EXAMPLES = """\
examples:
  tallystick presets
  tallystick presets qwen 30b
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "presets", EXAMPLES)
    command.add_argument("words", metavar="WORD", nargs="*", help="only names or families with these words")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.presets import PRESETS, RELEASES, found

    names = found(options.words)
    if not names:
        near = nearest(" ".join(options.words), [*PRESETS, *(release.family for release in RELEASES.values())])
        raise BadInput(
            f"no preset has {quoted(' '.join(options.words))} in its name or family{near}", code="unknown-name"
        )
    rows = []
    for name in names:
        ledger = count(name)
        totals = ledger.totals
        rows.append(
            {
                "name": name,
                "family": RELEASES[name].family,
                "released": RELEASES[name].month or None,
                "architecture": ledger.architecture,
                "parameters": ledger.total,
                "active": totals["active"],
                "bytes": totals.get("stored_bytes") or totals["bytes"],
            }
        )
    if options.format == "json":
        print_json(rows)
        return 0
    from tallystick.report.presets import show_presets

    print_answer(options.format, show_presets, rows, title="Presets")
    return 0
