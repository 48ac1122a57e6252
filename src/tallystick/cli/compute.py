"""``tallystick compute``: count a model's FLOPs and the time that they take."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import compute, count
from tallystick.cli.options import add_command, add_format, add_part, add_source, length, print_json, settings_of, whole

EXAMPLES = """\
examples:
  tallystick compute gpt2
  tallystick compute llama-3-8b --sequence 8192 --explain      each product with its formula
  tallystick compute llama-3-8b --tokens 15T --device h100 --mfu 0.4
  tallystick compute gpt2 --device a100 --tokens-per-second 150000
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "compute", "the operations of a model, by part, and how long they take", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--batch", metavar="N", type=whole, default=1, help="sequences at once (default: 1)")
    command.add_argument(
        "--sequence",
        metavar="N",
        help="tokens of each, 8192 or 8k (8 × 1024; default: as many as learned positions, or 4096)",
    )
    command.add_argument("--tokens", metavar="N", help="how long a run over so many takes: 300B, 1.5e9, 1,000,000")
    command.add_argument("--mode", choices=("training", "inference"), default="training", help="of that run")
    command.add_argument("--device", metavar="NAME", help="what computes: h100, a100-80gb, rtx4090, …")
    speed = command.add_mutually_exclusive_group()
    speed.add_argument("--mfu", metavar="SHARE", type=float, help="of the device's peak, such as 0.4")
    speed.add_argument("--tokens-per-second", metavar="N", type=float, help="as measured on one device: gives the MFU")
    command.add_argument("--explain", action="store_true", help="show each product with its formula")
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    answer = compute(
        count(options.source, part=options.part, **settings_of(options.settings)),
        batch=options.batch,
        sequence=None if options.sequence is None else length(options.sequence),
        tokens=options.tokens,
        mode=options.mode,
        device=options.device,
        mfu=options.mfu,
        tokens_per_second=options.tokens_per_second,
    )
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.compute import show_compute
    from tallystick.report.table import console

    show_compute(answer, console(), explain=options.explain, style=options.format)
    return 0
