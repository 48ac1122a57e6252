"""What a run leaves behind of its way: a line of JSON for each event, and what other tools want to see."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, quoted
from tallystick.sources.runs import LOG
from tallystick.training.config import TrainConfig
from tallystick.training.run import Event

WANDB_ID = "wandb.id"  # of the run there, which a run that goes on goes on with

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
            writers.append(_tensorboard(stack, out, start))
        if config.wandb:
            writers.append(_wandb(stack, config, start))

        def write(event: Event) -> None:
            for one in writers:
                one(event)

        yield write


def refuse_missing(config: TrainConfig) -> None:
    """Refuse a run that is to be logged with what is not installed, before anything is computed."""
    if config.tensorboard:
        _summary_writer()
    if config.wandb:
        _weights_and_biases(config)


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
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        partial.replace(path)
        file = stack.enter_context(path.open("ab", buffering=0))  # nothing is left to write when the disk is full
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadInput(f"{path} could not be written: {error.strerror or error}") from None

    def write(event: Event) -> None:
        line = {"kind": event.kind, "step": event.step, "time": round(time.time(), 3), **event.values}
        left = json.dumps(line).encode() + b"\n"
        try:
            while left:  # a disk may take some of it, and say only then that it is full
                left = left[file.write(left) :]
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}; what was saved before stays"
            ) from None

    return write


def _tensorboard(stack: ExitStack, out: Path, start: int) -> Writer:
    board = _summary_writer()(out / "tensorboard", purge_step=start + 1)  # what came after is drawn anew
    stack.callback(board.close)

    def write(event: Event) -> None:
        for key, value in _numbers(event).items():
            board.add_scalar(key, value, event.step)

    return write


def _wandb(stack: ExitStack, config: TrainConfig, start: int) -> Writer:
    wandb, remembered = _weights_and_biases(config), Path(config.out) / WANDB_ID
    name = remembered.read_text(encoding="utf-8") if start and remembered.exists() else secrets.token_hex(4)
    try:
        run = wandb.init(project=config.wandb, dir=config.out, config=asdict(config), id=name, resume="allow")
    except wandb.Error as error:  # no login, a name that cannot be
        raise BadInput(f"wandb = {quoted(config.wandb)}: {str(error).splitlines()[0]}") from None
    remembered.write_text(name, encoding="utf-8")
    stack.push(lambda kind, error, trace: run.finish(exit_code=int(error is not None)))

    def write(event: Event) -> None:
        if numbers := _numbers(event):
            run.log(numbers, step=event.step)

    return write


def _numbers(event: Event) -> dict[str, float]:
    return {f"{event.kind}/{key}": value for key, value in event.values.items() if isinstance(value, int | float)}


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput("tensorboard = true needs a package that is not there: pip install tensorboard") from None
    return SummaryWriter


def _weights_and_biases(config: TrainConfig) -> Any:
    try:
        import wandb
    except ImportError:
        raise BadInput(f"wandb = {quoted(config.wandb)} needs a package that is not there: pip install wandb") from None
    return wandb
