"""``tallystick presets``: list the models that are known by name."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count
from tallystick.cli.options import add_command, add_format, print_json
from tallystick.errors import BadInput, nearest, quoted


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "presets", "the models that it knows by name, with counts and bytes")
    command.add_argument(
        "words", metavar="WORD", nargs="*", help="only those whose name or family has it, as in qwen 30b"
    )
    add_format(command, "table", "json", "csv", "markdown")
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
    from tallystick.report.table import console

    show_presets(rows, console(), style=options.format)
    return 0
