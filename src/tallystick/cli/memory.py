"""``tallystick memory``: memory needed for inference or training, line by line."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count, memory
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_format,
    add_part,
    add_source,
    device_given,
    lengths,
    print_json,
    settings_of,
    whole,
)
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted

EXAMPLES = """\
examples:
  tallystick memory palm-540b --dtype float16
  tallystick memory llama-3-8b --batch 8 --sequence 8192 --kv-dtype fp8 --device l40s
  tallystick memory gpt2 --mode training --batch 8 --precision mixed --explain
  tallystick memory llama-3-8b --mode training --dtype nf4 --lora 16 q_proj v_proj
  tallystick memory ./checkpoint --device 24GB --format json
  tallystick memory llama-3-8b --sequence 1k:128k --plot memory.svg
  tallystick memory llama-3-70b --mode training --dp 16 --zero 3 --recompute full
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "memory", "what a model takes in memory, to serve or to train it", EXAMPLES)
    add_source(command)
    add_part(command)
    add_run(command, more_lengths="; several to compare: 1k:128k doubles, 1k:16k:1k steps, 1k,8k lists")
    command.add_argument("--plot", metavar="FILE", help="draw what several lengths take: .png, .svg or .html")
    command.add_argument("--device", metavar="NAME", help=DEVICE_HELP)
    command.add_argument("--explain", action="store_true", help="show the formula of each line, and its source")
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def add_run(command: argparse.ArgumentParser, *, more_lengths: str = "") -> None:
    """Add the options that `memory` and `fit` share; defaults are those of `memory`."""
    add = command.add_argument
    add("--mode", help="inference (default) or training")
    add(
        "--dtype",
        help="of the weights: float32, bfloat16, float16, fp8, int8, int4, nf4 (default: each tensor's own, or packed as stored)",
    )
    add("--batch", type=whole, metavar="N", help="sequences at once (default: 1)")
    add(
        "--sequence",
        metavar="N",
        help="tokens of each, 8192 or 8k (8 × 1024; default: the learned positions, or 4096)" + more_lengths,
    )
    add("--kv-dtype", help="of cached keys and values: float32, bfloat16, float16, fp8, int8, int4, int2")
    add("--optimizer", help="adamw (default), adamw-fused, adam8bit, sgd, sgd-momentum, adafactor, muon, none")
    add("--precision", help="pure (default); mixed: torch.autocast; master: 16 bits, a float32 copy in the optimizer")
    add("--attention", help="flash (default): a kernel that keeps no scores; or eager")
    add("--recompute", help="activations that the backward pass computes again: none (default), selective, full")
    add("--loss", help="full (default): of all logits at once; or chunked")
    add("--dp", type=whole, metavar="N", help="data parallel ranks; the answer is of one rank, the fullest")
    add(
        "--zero",
        type=whole,
        metavar="STAGE",
        help="what they share: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)",
    )
    add("--tp", type=whole, metavar="N", help="tensor parallel ranks")
    add("--pp", type=whole, metavar="N", help="pipeline stages")
    add("--ep", type=whole, metavar="N", help="expert parallel ranks, some of the data parallel ones")
    add(
        "--lora",
        nargs="+",
        metavar=("RANK", "MODULE"),
        help="train adapters of RANK alone, beside MODULEs or all linear",
    )


RUN = (
    "mode", "dtype", "batch", "kv_dtype", "optimizer", "precision", "attention", "recompute", "loss",
    "dp", "zero", "tp", "pp", "ep",
)  # fmt: skip


def run_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_run` that were given, as arguments of `memory`."""
    given = {name: getattr(options, name) for name in RUN if getattr(options, name) is not None}
    if options.sequence is not None:
        given["sequence"], *more = lengths(options.sequence)
        if more:
            raise BadInput(
                "one --sequence is asked for here: tallystick memory compares several", code="conflicting-options"
            )
    if options.lora:
        rank, *targets = options.lora
        if not rank.isdecimal() or len(rank) > 9:
            raise BadInput(
                f"--lora {quoted(rank)} is no rank: say --lora RANK, or --lora RANK MODULE …", code="bad-value"
            )
        given.update(lora=int(rank), targets=targets)
    return given


def _run(options: argparse.Namespace) -> int:
    ledger = count(options.source, part=options.part, **settings_of(options.settings))
    device = device_given(options.device)
    if options.plot or (options.sequence and len(lengths(options.sequence)) > 1):
        return _sweep(ledger, device, options)
    answer = memory(ledger, device=device, **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.memory import show_memory
    from tallystick.report.table import console

    show_memory(answer, console(), explain=options.explain, style=options.format)
    return 0


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
    held_by = None if device is None else device_of(device)
    answer = sweep(ledger, sequences, device=held_by, **run_of(options))
    if options.plot:
        from tallystick.report.charts.plot import save

        save(answer, options.plot)
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.memory import show_sweep
    from tallystick.report.table import console

    show_sweep(answer, console(), style=options.format)
    return 0
