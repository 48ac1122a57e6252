"""Options of a run that `memory` and `fit` share: dtypes, batch, optimizer, parallelism."""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.options import lengths, mode, whole
from tallystick.cli.parser import Parser
from tallystick.errors import BadInput, quoted

DTYPE_HELP = "dtype of the weights, such as bf16, int8, nf4 or q4_k (default: as stored); tallystick dtypes lists them"


def add_run(command: Parser, *, more_dtypes: str = "", more_lengths: str = "") -> None:
    """Add the options; defaults are those of `tallystick.memory`."""
    add = command.add_argument
    add("--mode", type=mode, help="inference (default) or training")
    add("--dtype", help=DTYPE_HELP + more_dtypes)
    add("--batch", type=whole, metavar="N", help="sequences in a batch (default: 1)")
    add(
        "--sequence",
        metavar="N",
        help="sequence length in tokens, 8192 or 8k (default: number of learned positions, or 4096)" + more_lengths,
    )
    add("--kv-dtype", help="dtype of the KV cache: float32, bfloat16, float16, fp8, int8, int4, int2")
    add("--optimizer", help="adamw (default), adamw-fused, adam8bit, sgd, sgd-momentum, adafactor, muon, none")
    add(
        "--precision",
        help="pure (default); mixed: torch.autocast; master: 16-bit weights, float32 copy in the optimizer",
    )
    add("--attention", help="flash (default): scores are not stored; or eager")
    add("--recompute", help="activation checkpointing: none (default), selective, full")
    add("--loss", help="compute the loss over all logits at once: full (default); or chunked")
    add("--dp", type=whole, metavar="N", help="data-parallel size; memory is reported for the busiest rank")
    add(
        "--zero",
        type=whole,
        metavar="STAGE",
        help="ZeRO stage: 1 shards optimizer state, 2 also gradients, 3 also weights (FSDP)",
    )
    add("--tp", type=whole, metavar="N", help="tensor-parallel size")
    add("--pp", type=whole, metavar="N", help="number of pipeline stages")
    add("--ep", type=whole, metavar="N", help="expert-parallel size, within the data-parallel ranks")
    add("--lora", type=_rank, metavar="RANK", help="train only LoRA adapters of this rank")
    add(
        "--lora-target",
        action="append",
        default=[],
        dest="targets",
        metavar="MODULE",
        help="module to adapt, such as q_proj; repeatable (default: all linear layers)",
    )
    command.take_words = _modules


def _rank(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a rank: give a number, such as 16")
    return int(text)


def _modules(options: argparse.Namespace, words: list[str]) -> list[str]:
    """Take the modules of ``--lora 16 q_proj v_proj``; return the other words."""
    if options.lora is None:
        return words
    options.targets = [*options.targets, *(word for word in words if not word.startswith("-"))]
    return [word for word in words if word.startswith("-")]


RUN = (
    "mode", "dtype", "batch", "kv_dtype", "optimizer", "precision", "attention", "recompute", "loss",
    "dp", "zero", "tp", "pp", "ep", "lora",
)  # fmt: skip


def run_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_run` that were given, as arguments of `memory`."""
    given = {name: getattr(options, name) for name in RUN if getattr(options, name) is not None}
    if options.sequence is not None:
        given["sequence"], *more = lengths(options.sequence)
        if more:
            raise BadInput("--sequence takes one length here; tallystick memory takes several", code="bad-value")
    if options.targets:
        given["targets"] = [module for word in options.targets for module in word.split(",")]
    return given
