"""``tallystick evaluate``: measure how well a checkpoint predicts a text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tallystick.cli.options import add_checkpoint, add_command, text_model, whole
from tallystick.cli.output import add_format, print_answer, print_json

EXAMPLES = """\
The text is read in windows of --context tokens. The last --stride tokens of
each window are scored, so that each token is scored once.

examples:
  tallystick evaluate ./checkpoint text.txt
  tallystick evaluate ./checkpoint text.txt --context 1024 --stride 1024
  tallystick evaluate ./checkpoint data.bin --tokenizer bytes --format json
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "evaluate", EXAMPLES)
    add_checkpoint(command)
    command.add_argument("file", metavar="FILE", help="a UTF-8 text; any file if the tokens are bytes")
    command.add_argument(
        "--context", type=whole, metavar="N", help="window in tokens (default: all positions, or 2048)"
    )
    command.add_argument(
        "--stride", type=whole, metavar="N", help="tokens scored per window (default: half of the context)"
    )
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.files.local import open_regular

    file, _ = open_regular(Path(options.file))
    with file:
        content = file.read()
    model = text_model(options)
    from tallystick.models.evaluate import evaluate

    with _bar() as progress:
        score = evaluate(
            model.decoder,
            model.tokenizer,
            content,
            context=options.context,
            stride=options.stride,
            progress=progress,
        )
    if options.format == "json":
        print_json({"source": options.checkpoint, "file": options.file, **score.to_dict()})
        return 0
    from tallystick.report.score import show_score

    print_answer(options.format, show_score, score, f"{options.checkpoint} on {options.file}", title=options.checkpoint)
    return 0


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on stderr if it is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("scoring", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
