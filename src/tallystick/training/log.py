"""What a run leaves behind of its way: a line of JSON for each event, and what other tools want to see."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput
from tallystick.training.config import TrainConfig
from tallystick.training.run import Event

LOG = "log.jsonl"

Writer = Callable[[Event], None]


@contextmanager
def logging(config: TrainConfig, start: int) -> Iterator[Writer]:
    """What takes in every event of a run: `log.jsonl`, and TensorBoard and Weights & Biases where the config asks.

    Args:
        config: of the run.
        start: the step that it begins at. Lines of steps after it, of a run that went on and was cut off, are dropped.
    """
    out = Path(config.out)
    with ExitStack() as stack:
        writers = [_lines(stack, out / LOG, start)]
        if config.tensorboard:
            writers.append(_tensorboard(stack, out))
        if config.wandb:
            writers.append(_wandb(stack, config))

        def write(event: Event) -> None:
            for one in writers:
                one(event)

        yield write


def read_log(path: Path) -> list[dict[str, Any]]:
    """Every whole line of a log; one that was cut off is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _lines(stack: ExitStack, path: Path, start: int) -> Writer:
    kept = [line for line in read_log(path) if line["step"] <= start]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    file = stack.enter_context(path.open("a", encoding="utf-8"))

    def write(event: Event) -> None:
        file.write(
            json.dumps({"kind": event.kind, "step": event.step, "time": round(time.time(), 3), **event.values}) + "\n"
        )
        file.flush()

    return write


def _tensorboard(stack: ExitStack, out: Path) -> Writer:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput("tensorboard = true needs it: pip install tensorboard") from None
    board = SummaryWriter(out / "tensorboard")
    stack.callback(board.close)

    def write(event: Event) -> None:
        for key, value in event.values.items():
            if isinstance(value, int | float):
                board.add_scalar(f"{event.kind}/{key}", value, event.step)

    return write


def _wandb(stack: ExitStack, config: TrainConfig) -> Writer:
    try:
        import wandb
    except ImportError:
        raise BadInput(f"wandb = {config.wandb!r} needs it: pip install wandb") from None
    run = wandb.init(project=config.wandb, dir=config.out, config=asdict(config))
    stack.callback(run.finish)

    def write(event: Event) -> None:
        numbers = {
            f"{event.kind}/{key}": value for key, value in event.values.items() if isinstance(value, int | float)
        }
        run.log(numbers, step=event.step)

    return write
