"""The operations of `survive` by name, and its report in lines."""

import io

from tallystick.live.operations import OPERATIONS
from tallystick.report.survival import show_survival
from tallystick.report.tables.table import console

BY_NAME = {operation.name: operation for operation in OPERATIONS}


def lines(answer, style):
    """What `survive` prints in a style, line by line."""
    out = io.StringIO()
    show_survival(answer, console(out), style=style)
    return [line.rstrip() for line in out.getvalue().splitlines()]
