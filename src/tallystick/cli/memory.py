"""``tallystick memory``: what a model takes in memory, line by line."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick import count, memory
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_format,
    add_source,
    device_given,
    print_json,
    settings_of,
)
from tallystick.errors import BadInput

EXAMPLES = """\
examples:
  tallystick memory palm-540b --dtype float16
  tallystick memory llama-3-8b --batch 8 --sequence 8192 --kv-dtype fp8 --device l40s
  tallystick memory gpt2 --mode training --batch 8 --precision mixed --explain
  tallystick memory llama-3-8b --mode training --dtype nf4 --lora 16 q_proj v_proj
  tallystick memory ./checkpoint --device 24GB --format json
  tallystick memory llama-3-70b --mode training --dp 16 --zero 3 --recompute full
"""


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = add_command(commands, "memory", "what a model takes in memory, to serve or to train it", EXAMPLES)
    add_source(command)
    add_run(command)
    command.add_argument("--device", metavar="NAME", help=DEVICE_HELP)
    command.add_argument("--explain", action="store_true", help="show the formula of each line, and its source")
    add_format(command, "table", "json", "csv", "markdown")
    command.set_defaults(run=_run)


def add_run(command: argparse.ArgumentParser) -> None:
    """How the model is run: what `memory` and `fit` have in common. What is not said is left to `memory`."""
    add = command.add_argument
    add("--mode", help="inference (default) or training")
    add("--dtype", help="of the weights: float32, bfloat16, float16, fp8, int8, int4, nf4 (default: each tensor's own)")
    add("--batch", type=int, metavar="N", help="sequences at once (default: 1)")
    add("--sequence", type=int, metavar="N", help="tokens of each (default: the learned positions, or 4096)")
    add("--kv-dtype", help="of cached keys and values: float32, bfloat16, float16, fp8, int8, int4, int2")
    add("--optimizer", help="adamw (default), adamw-fused, adam8bit, sgd, sgd-momentum, adafactor, muon, none")
    add("--precision", help="pure (default); mixed: torch.autocast; master: 16 bits, a float32 copy in the optimizer")
    add("--attention", help="flash (default): a kernel that keeps no scores; or eager")
    add("--recompute", help="activations that the backward pass computes again: none (default), selective, full")
    add("--loss", help="full (default): of all logits at once; or chunked")
    add("--dp", type=int, metavar="N", help="data parallel ranks; the answer is of one rank, the fullest")
    add(
        "--zero",
        type=int,
        metavar="STAGE",
        help="what they share: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)",
    )
    add("--tp", type=int, metavar="N", help="tensor parallel ranks")
    add("--pp", type=int, metavar="N", help="pipeline stages")
    add("--ep", type=int, metavar="N", help="expert parallel ranks, some of the data parallel ones")
    add(
        "--lora",
        nargs="+",
        metavar=("RANK", "MODULE"),
        help="train adapters of RANK alone, beside MODULEs or all linear",
    )


RUN = (
    "mode", "dtype", "batch", "sequence", "kv_dtype", "optimizer", "precision", "attention", "recompute", "loss",
    "dp", "zero", "tp", "pp", "ep",
)  # fmt: skip


def run_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_run` that were given, as `memory` takes them."""
    given = {name: getattr(options, name) for name in RUN if getattr(options, name) is not None}
    if options.lora:
        rank, *targets = options.lora
        if not rank.isdecimal() or len(rank) > 9:
            raise BadInput(f"--lora {rank!r} is no rank: say --lora RANK, or --lora RANK MODULE …")
        given.update(lora=int(rank), targets=targets)
    return given


def _run(options: argparse.Namespace) -> int:
    ledger = count(options.source, **settings_of(options.settings))
    answer = memory(ledger, device=device_given(options.device), **run_of(options))
    if options.format == "json":
        print_json(answer.to_dict())
        return 0
    from tallystick.report.memory import show_memory
    from tallystick.report.table import console

    show_memory(answer, console(), explain=options.explain, style=options.format)
    return 0
