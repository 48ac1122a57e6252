"""``tallystick train``: train a decoder from scratch, or continue from a checkpoint."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.cli.options import add_command, add_settings, settings_of
from tallystick.cli.output import add_format, print_json
from tallystick.extras import needed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallystick.training.plan import Plan
    from tallystick.training.state import Event

EXAMPLES = """\
examples:
  tallystick train --set preset=nano                minutes on a CPU
  tallystick train --config run.toml --set steps=2000 --set batch=16
  tallystick train --config run.toml --resume auto  continue from the newest
  tallystick train --set source=./checkpoint --set pretrained=true
  torchrun --nproc-per-node 2 -m tallystick train --config run.toml
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "train", EXAMPLES)
    command.add_argument("--config", metavar="FILE.toml", help="keys of the run; keys of the model in a table [model]")
    add_settings(
        command,
        "--set",
        "override a key: preset (nano, shakespeare-char, gpt2-124m), source, data, tokenizer, steps, batch, sequence,"
        " learning_rate, out, seed and others; model.KEY is a key of the model; repeatable",
        to="settings",
    )
    command.add_argument(
        "--resume",
        default="never",
        metavar="WHAT",
        help="auto: continue from the newest complete checkpoint in out; or the path of a checkpoint (default: never)",
    )
    add_format(command, "text", "json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tallystick.files.texts import read_toml
    from tallystick.training.config import configured

    values = read_toml(Path(options.config)) if options.config else {}
    config = configured(values, settings_of(options.settings), where=options.config or "--set")
    for library in ("torch", "numpy", "safetensors"):
        needed(library, "training", "train")
    from tallystick.report.numbers import in_bytes
    from tallystick.report.tables.table import console
    from tallystick.report.training import Follower, show_plan
    from tallystick.training.run import Diverged
    from tallystick.training.train import train

    out = console(sys.stderr if options.format == "json" else None)
    follower = Follower(out)

    def planned(plan: Plan) -> Callable[[Event], None]:
        show_plan(plan, out)
        return follower.begin(plan)

    try:
        outcome = train(config, resume=options.resume, planned=planned)
    except Diverged as error:
        sys.stderr.write(f"tallystick: {error}\n")
        return 1
    finally:
        follower.end()
    if follower.plan is None:  # another rank prints
        return 0
    from tallystick.report.charts.curves import save_curves
    from tallystick.sources.run_folder import LOG
    from tallystick.training.log import read_log

    save_curves(read_log(Path(config.out) / LOG), outcome.to_dict(), Path(config.out))
    if options.format == "json":
        print_json({"plan": follower.plan.to_dict(), **outcome.to_dict()})
        return 0
    predicted = f", predicted {in_bytes(outcome.predicted_bytes)}" if outcome.predicted_bytes else ""
    if outcome.peak_bytes is not None:
        out.print(f"peak memory {in_bytes(outcome.peak_bytes)}{predicted}", highlight=False)
    if outcome.kind == "stopped":
        out.print(f"stopped after step {outcome.step:,}, and saved: go on with --resume auto", highlight=False)
    else:
        out.print(f"the model is in {outcome.model}", highlight=False)
    return 0
