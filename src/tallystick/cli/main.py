"""``tallystick``: its commands, one file each, and the exit code of a run.

Exit codes: 0 done, 1 a requested check failed, 2 no answer, 130 interrupted. Without an answer, one
line on stderr gives the reason: bad input, output that cannot be written, too little memory, or a
bug in tallystick. A reader that closes the output early is not an error.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from tallystick import __version__, startup
from tallystick.cli import folder, streams
from tallystick.errors import BadInput
from tallystick.legible import ERRORS
from tallystick.sources.factory.on_meta import in_real_memory
from tallystick.unforeseen import line_of, traceback_of

# Modules of this package, in the order of the help.
COMMANDS = (
    "count", "formula", "compare", "reconcile", "check", "memory", "fit", "compute", "ties", "survive", "explore", "train",
    "experiment", "generate", "evaluate", "presets",
)  # fmt: skip

LONGEST = 500  # characters of an argparse message

EXAMPLES = """\
examples:
  tallystick count gpt2                             how many parameters, and where
  tallystick count ./checkpoint --by layer          a folder with config.json and safetensors
  tallystick formula gpt2 --steps                   each product with its numbers
  tallystick compare gpt2 ./checkpoint              why one has more than the other
  tallystick reconcile gpt2 163M                    which way of counting gives a claimed count
  tallystick check notes.md --against gpt2          which lines of a derivation are wrong
  tallystick memory llama-3-8b --sequence 8192      what it takes, line by line
  tallystick fit gpt2 --device 8GB --mode training  whether it fits, and what would make it
  tallystick compute llama-3-8b --sequence 8192     what it computes, part by part
  tallystick ties ./checkpoint                      what is shared, and what was lost
  tallystick survive                                which operations keep a tie
  tallystick explore gpt2                           all of this on a page, with sliders
  tallystick train --set preset=nano                a decoder, on this machine's own text
  tallystick experiment tying                       what tying does to a small decoder
  tallystick generate ./checkpoint --prompt Once    text, as it is written
  tallystick evaluate ./checkpoint text.txt         how well a text is predicted
  tallystick presets                                the names that it knows

shell completion:
  tallystick --print-completion bash > ~/.local/share/bash-completion/completions/tallystick
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        cut = message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…"  # it repeats the user's words
        raise BadInput(f"{cut} (see {self.prog} --help)", code="bad-value")


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Build the parser with all commands, or import and add only one command."""
    parser = _Parser(
        prog="tallystick",
        description="Tells exactly where every parameter of a language model goes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tallystick {__version__}")
    # Given `prog`, argparse does not format a usage line to find it, which saves imports.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=parser.prog)

    for name in (command,) if command else COMMANDS:
        import_module(f"tallystick.cli.{name}").add(commands)
    return parser


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
    # A short run makes many small objects and keeps most: frequent garbage collection is wasted.
    gc.set_threshold(1_000_000)
    completion = "--print-completion" in arguments
    alone = not completion and arguments and arguments[0] in COMMANDS
    parser = build_parser(arguments[0] if alone else None)
    if completion:
        import shtab

        shtab.add_argument_to(parser)
    try:
        options = parser.parse_args(arguments)
    except SystemExit:  # --help and --version have printed; errors are BadInput
        return 0
    with in_real_memory(getattr(options, "real", False)):
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
