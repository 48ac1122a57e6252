"""``tallystick compute``: count a model's FLOPs, and estimate the time of a run."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import compute
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_part,
    add_source,
    device_given,
    ledger_of,
    length,
    mode,
    share,
    whole,
)
from tallystick.cli.output import add_format, print_answer, print_json

EXAMPLES = """\
examples:
  tallystick compute gpt2
  tallystick compute llama-3-8b --sequence 8192 --explain
  tallystick compute llama-3-8b --tokens 15T --device h100 --mfu 40%
  tallystick compute llama-3-8b --tokens 15T --device h100 --devices 1024
  tallystick compute gpt2 --device a100-80gb --tokens-per-second 150000
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "compute", EXAMPLES)
    add_source(command)
    add_part(command)
    command.add_argument("--batch", metavar="N", type=whole, default=1, help="sequences in a batch (default: 1)")
    command.add_argument(
        "--sequence",
        metavar="N",
        help="sequence length in tokens, 8192 or 8k (default: number of learned positions, or 4096)",
    )
    command.add_argument("--tokens", metavar="N", help="tokens of a run, to estimate its time: 300B, 1.5e9, 1,000,000")
    command.add_argument(
        "--mode",
        type=mode,
        default="training",
        help="mode of the run: training (default) or inference",
    )
    command.add_argument("--device", metavar="NAME", help=DEVICE_HELP)
    command.add_argument("--devices", metavar="N", type=whole, help="number of such devices (default: 1)")
    speed = command.add_mutually_exclusive_group()
    speed.add_argument("--mfu", metavar="SHARE", type=share, help="share of the device's peak FLOP/s: 0.4 or 40%%")
    speed.add_argument(
        "--tokens-per-second", metavar="N", type=float, help="measured speed of one device; gives the MFU"
    )
    command.add_argument("--explain", action="store_true", help="show each matrix product with its formula")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    answer = compute(
        ledger_of(options),
        batch=options.batch,
        sequence=None if options.sequence is None else length(options.sequence),
        tokens=options.tokens,
        mode=options.mode,
        device=device_given(options.device),
        mfu=options.mfu,
        tokens_per_second=options.tokens_per_second,
        devices=options.devices,
    )
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.compute import show_compute

    print_answer(options.format, show_compute, answer, explain=options.explain)
    return 0
