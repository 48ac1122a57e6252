"""``tallystick explore``: serve a web page to explore a model."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import add_command, add_source, settings_of, whole
from tallystick.errors import BadInput
from tallystick.extras import needing

EXAMPLES = """\
examples:
  tallystick explore gpt2
  tallystick explore ./checkpoint --port 8000 --no-browser
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "explore", EXAMPLES)
    add_source(command, without="gpt2")
    command.add_argument("--port", metavar="N", type=whole, default=0, help="port to serve on (default: a free one)")
    command.add_argument("--no-browser", action="store_true", help="print the address; open no browser")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if not 0 <= options.port < 2**16:
        raise BadInput(f"--port {options.port} is not a port: give one from 1 to 65535", code="bad-value")
    with needing("the page"):
        from tallystick.web.serve import serve
    from tallystick import count

    settings = settings_of(options.settings)
    if options.source is not None:
        count(options.source, **settings)  # report an uncountable source here, not on the page
    serve(options.source, settings, port=options.port, browser=not options.no_browser)
    return 0
