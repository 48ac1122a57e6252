"""The log of a run: `log.jsonl`, and TensorBoard and Weights & Biases if asked."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import inf
from pathlib import Path
from types import UnionType
from typing import Any

from tallystick.errors import BadInput, quoted
from tallystick.files.atomic import write_file
from tallystick.files.local import open_regular
from tallystick.files.texts import read_text
from tallystick.sources.run_folder import LOG
from tallystick.training.config import TrainConfig
from tallystick.training.state import Event

WANDB_ID = "wandb.id"  # file with the W&B run id, for resuming
LARGEST, LONGEST_LINE = 1 << 30, 1 << 20  # limits in bytes, of the log and of one line
MOST = 1 << 63  # largest finite number that can be plotted
DRAWN = {"step": ("loss", "speed"), "evaluated": ("loss",)}  # numbers that each line of a kind must have

Writer = Callable[[Event], None]


@contextmanager
def logging(config: TrainConfig, start: int) -> Iterator[Writer]:
    """Yield a function that logs an event to `log.jsonl`, TensorBoard and Weights & Biases.

    Args:
        config: config of the run; it says which of the two are used.
        start: the step at which the run starts. Later lines, from before a resume, are dropped.
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
    """Raise BadInput if a logger's package is not installed, before anything is computed."""
    if config.tensorboard:
        _summary_writer()
    if config.wandb:
        _weights_and_biases(config)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return every complete line of a log; damaged lines are skipped.

    Raises:
        BadInput: if the path is not a regular file, or is too large for a log.
    """
    return [event for _, event in _events(path) if event is not None]


def damage_in(path: Path) -> str:
    """Return the damage of a log in one line, or ""; an incomplete last line is normal."""
    damaged = [number for number, (_, event) in enumerate(_events(path), start=1) if event is None]
    if not damaged:
        return ""
    more = f", and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
    return f"{path}: line {damaged[0]:,} is damaged{more} and was skipped"


def _events(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Yield each line with its event; None if it is damaged."""
    if not os.path.lexists(path) or (path.is_file() and not path.stat().st_size):
        return
    file, size = open_regular(path)
    with file:
        if size > LARGEST:
            raise BadInput(
                f"{path} has {size:,} bytes, more than the {LARGEST:,} allowed: move it away", code="too-large"
            )
        while line := file.readline(LONGEST_LINE):
            if line.endswith(b"\n"):
                yield line, _event(line)
            elif len(line) < LONGEST_LINE:  # the last line, cut off in a killed run
                event = _event(line)
                if event is not None:
                    yield line + b"\n", event
            else:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield b"", None


def _event(line: bytes) -> dict[str, Any] | None:
    """Return a line's event if it has all numbers of its kind, else None."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str) or not _is_number(event.get("step"), int):
        return None
    return event if all(_is_number(event.get(key), int | float) for key in DRAWN.get(event["kind"], ())) else None


def _is_number(value: object, kind: type | UnionType) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and not MOST < abs(value) < inf  # type: ignore[arg-type]


def _lines(stack: ExitStack, path: Path, start: int) -> Writer:
    kept = (line for line, event in _events(path) if event is not None and event["step"] <= start)
    write_file(path, kept)
    try:
        file = stack.enter_context(
            path.open("ab", buffering=0)
        )  # unbuffered: nothing is left to write if the disk is full
    except OSError as error:
        raise BadInput(f"{path} could not be written: {error.strerror or error}", code="unwritable") from None

    def write(event: Event) -> None:
        line = {"kind": event.kind, "step": event.step, "time": round(time.time(), 3), **event.values}
        try:
            _append(file.fileno(), json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}; earlier checkpoints are kept",
                code="unwritable",
            ) from None

    return write


def _append(descriptor: int, content: bytes) -> None:
    """Write all bytes: a full disk may take a part and fail only at the next call."""
    while content:
        content = content[os.write(descriptor, content) :]


def _tensorboard(stack: ExitStack, out: Path, start: int) -> Writer:
    folder = out / "tensorboard"

    def refusal(error: OSError) -> BadInput:
        return BadInput(
            f"{folder} could not be written: {error.strerror or error}; earlier checkpoints are kept", code="unwritable"
        )

    try:
        board = _summary_writer()(folder, purge_step=start + 1)  # later points are drawn again
    except OSError as error:
        raise refusal(error) from None
    stack.callback(board.close)

    def write(event: Event) -> None:
        try:
            for key, value in _numbers(event).items():
                board.add_scalar(key, value, event.step)
        except OSError as error:
            raise refusal(error) from None

    return write


def _wandb(stack: ExitStack, config: TrainConfig, start: int) -> Writer:
    wandb, remembered = _weights_and_biases(config), Path(config.out) / WANDB_ID
    name = _remembered(remembered) if start else secrets.token_hex(4)
    try:
        run = wandb.init(project=config.wandb, dir=config.out, config=asdict(config), id=name, resume="allow")
    except wandb.Error as error:  # no login, or an invalid name
        raise BadInput(f"wandb = {quoted(config.wandb)}: {str(error).splitlines()[0]}", code="bad-value") from None
    write_file(remembered, name.encode())
    stack.push(lambda kind, error, trace: run.finish(exit_code=int(error is not None)))

    def write(event: Event) -> None:
        if numbers := _numbers(event):
            run.log(numbers, step=event.step)

    return write


def _remembered(path: Path) -> str:
    """Return the W&B run id in the file, or a new one if there is none."""
    name = read_text(path).strip() if path.exists() else ""
    return name if re.fullmatch(r"[0-9a-zA-Z_-]{1,64}", name) else secrets.token_hex(4)


def _numbers(event: Event) -> dict[str, float]:
    return {f"{event.kind}/{key}": value for key, value in event.values.items() if isinstance(value, int | float)}


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput("tensorboard = true needs a package: pip install tensorboard", code="missing-package") from None
    return SummaryWriter


def _weights_and_biases(config: TrainConfig) -> Any:
    try:
        import wandb
    except ImportError:
        raise BadInput(
            f"wandb = {quoted(config.wandb)} needs a package: pip install wandb",
            code="missing-package",
        ) from None
    return wandb
