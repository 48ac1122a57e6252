"""``tallystick``: its commands, one file each, and the exit code of a run.

Exit codes: 0 done, 1 the answer is no (see `cli.output.add_exit_code`), 2 no answer, 130
interrupted. Without an answer, one line on stderr gives the reason: bad input, output that cannot
be written, too little memory, or a bug in tallystick. A reader that closes the output early is not
an error.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from tallystick import startup
from tallystick.cli import folder, streams
from tallystick.cli.parser import parsed
from tallystick.legible import ERRORS
from tallystick.unforeseen import line_of, traceback_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    Args:
        argv: the command's words. None: this process is the command, with its words, streams and
            signals.
    """
    try:
        if argv is None:
            startup.prepare()
            streams.guard()
            folder.guard()
        elif isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors=ERRORS)
        code = _run(list(sys.argv[1:] if argv is None else argv))
        streams.flush()
    except BaseException as error:  # users get one line for any error
        code = _ended(error)
        if argv is None and code == startup.INTERRUPTED:
            startup.leave(code)
    return code


def _run(arguments: list[str]) -> int:
    try:
        options = parsed(arguments)
    except SystemExit:  # --help and --version have printed; errors are BadInput
        return 0
    code: int = options.run(options)
    return code


def _ended(error: BaseException) -> int:
    """Print what ended the command, and return its exit code."""
    stopped = startup.interrupted() or isinstance(error, KeyboardInterrupt)
    line = "interrupted" if stopped else line_of(error)
    if stopped:
        streams.drop()
    try:
        sys.stderr.write(f"{traceback_of(error)}tallystick: {line}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # stderr is closed, full or replaced: only the exit code is left
        pass
    return startup.INTERRUPTED if stopped else startup.FAILED
