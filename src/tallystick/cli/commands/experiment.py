"""``tallystick experiment``: train small decoders with and without tying, and compare them."""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

from tallystick.cli.options import add_command, add_settings, settings_of, whole
from tallystick.cli.output import add_format, print_json
from tallystick.errors import BadInput
from tallystick.extras import needed

EXAMPLES = """\
examples:
  tallystick experiment tying                       about 40 minutes on a core
  tallystick experiment tying --quick --out tying   3 minutes, one vocabulary
"""
# Small enough for a quarter of a minute per run. The vocabularies make the embedding 10%, 31% and
# 57% of the tied model.
RUN = {
    "source": "llama", "sequence": 64, "batch": 8, "eval_batches": 40, "learning_rate": 4e-3, "warmup": 50,
    "model": {
        "hidden_size": 64, "intermediate_size": 172, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4,
        "max_position_embeddings": 64, "initializer_range": 0.02,
    },
}  # fmt: skip
TOKENIZERS = ("bytes", "bpe:1024", "bpe:3072")
FULL = {"steps": 500, "seeds": 4}
QUICK = {"steps": 100, "seeds": 2}  # and the middle vocabulary alone


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "experiment", EXAMPLES)
    command.add_argument(
        "which", choices=("tying",), help="train small decoders tied and untied, each at its best settings"
    )
    command.add_argument("--quick", action="store_true", help="one vocabulary, fewer steps and seeds: a first look")
    command.add_argument("--steps", type=whole, metavar="N", help="steps of each run (default: 500; quick: 100)")
    command.add_argument("--seeds", type=whole, metavar="K", help="runs of each variant (default: 4; quick: 2)")
    command.add_argument("--out", default="experiment", metavar="FOLDER", help="folder for runs, page and plot")
    add_settings(command, "--set", "a key of the runs, as for train: --set batch=32; repeatable", to="settings")
    add_format(command, "markdown", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for library in ("torch", "numpy", "safetensors"):
        needed(library, "an experiment", "train")
    from tallystick.files.atomic import write_file
    from tallystick.report.experiment import drawable, drawn, page
    from tallystick.training.config import configured
    from tallystick.training.experiment import Interrupted, tying

    size = QUICK if options.quick else FULL
    seeds = size["seeds"] if options.seeds is None else options.seeds
    if seeds < 1:
        raise BadInput(f"--seeds is {seeds}, expected 1 or more", code="bad-value")
    drawable()
    steps = size["steps"] if options.steps is None else options.steps
    settings = {"steps": steps, "out": options.out, **settings_of(options.settings)}
    tokenizers = TOKENIZERS[1:2] if options.quick else TOKENIZERS
    if "tokenizer" in settings:
        tokenizers = (str(settings["tokenizer"]),)
    config = configured(RUN, settings, where="--set")

    def progress(name: str, step: int) -> None:
        sys.stderr.write(f"{name}: step {step:,}\n")

    def noted(note: str) -> None:
        sys.stderr.write(f"{note}\n")

    try:
        answer = tying(config, tokenizers=tokenizers, seeds=seeds, progress=progress, noted=noted)
    except Interrupted:
        sys.stderr.write("stopped, and saved: the same command goes on\n")
        return 0
    out = Path(config.out)
    write_file(out / "tying.svg", drawn(answer))
    text = page(answer, "tying.svg", command=_command(options), made_with=_made_with())
    write_file(out / "tying.md", text.encode())
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        sys.stdout.write(text)
    return 0


def _command(options: argparse.Namespace) -> str:
    """Return the command that makes the same page, independent of the output folder."""
    words = ["--quick"] if options.quick else []
    for key in ("steps", "seeds"):
        if getattr(options, key) is not None:
            words += [f"--{key}", str(getattr(options, key))]
    if options.settings:
        words += ["--set", *options.settings]
    return shlex.join(["tallystick", "experiment", "tying", *words])


def _made_with() -> str:
    """Return the versions that the numbers depend on; Python's library is the default text."""
    import torch

    return f"Python {platform.python_version()} and PyTorch {torch.__version__} on 1 thread"
