"""``tallystick memory``: memory needed for inference or training, line by line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tallystick import memory
from tallystick.cli.options import DEVICE_HELP, add_command, add_part, add_source, device_given, ledger_of, lengths
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.cli.run_options import add_run, run_of
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

if TYPE_CHECKING:
    from tallystick.answers.memory.sweep import Sweep

EXAMPLES = """\
examples:
  tallystick memory palm-540b --dtype float16
  tallystick memory gpt2 --dtype bf16,int8,int4
  tallystick memory llama-3-8b --sequence 8k --kv-dtype fp8 --device l40s
  tallystick memory gpt2 --mode training --batch 8 --precision mixed --explain
  tallystick memory llama-3-8b --mode training --dtype nf4 --lora 16
  tallystick memory ./checkpoint --device 24GB --format json
  tallystick memory llama-3-8b --sequence 1k:128k --plot memory.svg
  tallystick memory llama-3-70b --mode training --dp 16 --zero 3
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "memory", EXAMPLES)
    add_source(command)
    add_part(command)
    add_run(
        command,
        more_dtypes="; several side by side: bf16,int8,int4",
        more_lengths="; several: 1k:128k doubles, 1k:16k:1k steps, 1k,8k lists",
    )
    command.add_argument("--plot", metavar="FILE", help="plot memory at several lengths: .png, .svg or .html")
    command.add_argument("--device", metavar="NAME", help=f"say whether it fits: {DEVICE_HELP}")
    command.add_argument("--explain", action="store_true", help="show the formula and source of each line")
    add_exit_code(command, "it does not fit --device")
    add_format(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.exit_code and options.device is None:
        raise BadInput("--exit-code asks whether it fits: name a device with --device", code="conflicting-options")
    ledger = ledger_of(options)
    device = device_given(options.device)
    if options.plot or (options.sequence and len(lengths(options.sequence)) > 1):
        return _sweep(ledger, device, options)
    if options.dtype and "," in options.dtype:
        return _side_by_side(ledger, device, options)
    answer = memory(ledger, device=device, **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.charts.bars import draw_memory
        from tallystick.report.memory import show_memory

        picture = draw_memory(answer) if options.format == "html" else ""
        print_answer(options.format, show_memory, answer, explain=options.explain, picture=picture)
    return int(options.exit_code and not answer.fits)


def _sweep(ledger: Ledger, device: Any, options: argparse.Namespace) -> int:
    from tallystick.answers.devices import device_of
    from tallystick.answers.memory.sweep import sweep

    if options.plot:
        from tallystick.report.charts.plot import kind_of

        kind_of(options.plot)  # validate before the work
    sequences, options.sequence = lengths(options.sequence) if options.sequence else [], None
    if len(sequences) < 2:
        raise BadInput(
            "--plot draws several lengths: say them with --sequence, such as 1k:128k", code="conflicting-options"
        )
    if options.explain:
        raise BadInput(
            "--explain shows the formulas at one length: say one with --sequence", code="conflicting-options"
        )
    if options.dtype and "," in options.dtype:
        raise BadInput("give several of --dtype or of --sequence, not of both", code="conflicting-options")
    answer = sweep(ledger, sequences, device=None if device is None else device_of(device), **run_of(options))
    if options.plot:
        from tallystick.report.charts.plot import save

        save(answer, options.plot)
    return _printed(answer, options)


def _side_by_side(ledger: Ledger, device: Any, options: argparse.Namespace) -> int:
    from tallystick.answers.devices import device_of
    from tallystick.answers.memory.sweep import sweep_dtypes

    if options.explain:
        raise BadInput("--explain shows the formulas in one dtype: give one --dtype", code="conflicting-options")
    dtypes, options.dtype = options.dtype.split(","), None
    held_by = None if device is None else device_of(device)
    return _printed(sweep_dtypes(ledger, dtypes, device=held_by, **run_of(options)), options)


def _printed(answer: Sweep, options: argparse.Namespace) -> int:
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.memory import show_sweep

        print_answer(options.format, show_sweep, answer)
    return int(options.exit_code and not all(one.fits for one in answer.answers))
