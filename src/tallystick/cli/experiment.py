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
  tallystick experiment tying                       15 minutes on one core
  tallystick experiment tying --steps 300 --seeds 3 --out runs/tying
"""
# Small enough for about a minute per run. The embedding is a large share of the parameters, as in
# small models.
RUN = {
    "source": "llama", "tokenizer": "bpe:2048", "sequence": 64, "batch": 16, "learning_rate": 3e-3, "warmup": 50,
    "model": {
        "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4,
        "max_position_embeddings": 64,
    },
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "experiment", EXAMPLES)
    command.add_argument("which", choices=("tying",), help="train a decoder tied, untied, and untied but narrower")
    command.add_argument("--steps", type=whole, default=1000, metavar="N", help="steps of each run (default: 1000)")
    command.add_argument("--seeds", type=whole, default=5, metavar="K", help="runs of each variant (default: 5)")
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

    if options.seeds < 1:
        raise BadInput(f"--seeds is {options.seeds}, expected 1 or more", code="bad-value")
    drawable()
    settings = {"steps": options.steps, "out": options.out, **settings_of(options.settings)}
    config = configured(RUN, settings, where="--set")

    def progress(name: str, step: int) -> None:
        sys.stderr.write(f"{name}: step {step:,} of {config.steps:,}\n")

    def noted(note: str) -> None:
        sys.stderr.write(f"{note}\n")

    try:
        answer = tying(config, seeds=options.seeds, progress=progress, noted=noted)
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
    said = shlex.join(["--set", *options.settings]) if options.settings else ""
    return f"tallystick experiment tying --steps {options.steps} --seeds {options.seeds} {said}".rstrip()


def _made_with() -> str:
    """Return the versions that the numbers depend on; Python's library is the default text."""
    import torch

    threads = torch.get_num_threads()
    return (
        f"Python {platform.python_version()} and PyTorch {torch.__version__} on {threads} thread{'s' * (threads > 1)}"
    )
