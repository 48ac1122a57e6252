"""What a run leaves behind of its way: a line of JSON for each event, and what other tools want to see."""

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

WANDB_ID = "wandb.id"  # of the run there, which a run that goes on goes on with
LARGEST, LONGEST_LINE = 1 << 30, 1 << 20  # bytes that are read of a log, and of a line of it
MOST = 1 << 63  # of a finite number in it: beyond, it cannot be drawn
DRAWN = {"step": ("loss", "speed"), "evaluated": ("loss",)}  # what each line of these kinds has

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
    """Every whole line of a log; a damaged one is left out.

    Raises:
        BadInput: for what is no regular file, and one that is too large for a log.
    """
    return [event for _, event in _events(path) if event is not None]


def damage_in(path: Path) -> str:
    """What is wrong with a log in one line, or "". A last line that was cut off is not: a killed run leaves it so."""
    damaged = [number for number, (_, event) in enumerate(_events(path), start=1) if event is None]
    if not damaged:
        return ""
    more = f", and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
    return f"{path}: line {damaged[0]:,} is damaged{more}, and left out"


def _events(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line, and the event in it; None where it is damaged."""
    if not os.path.lexists(path) or (path.is_file() and not path.stat().st_size):
        return
    file, size = open_regular(path)
    with file:
        if size > LARGEST:
            raise BadInput(
                f"{path} has {size:,} bytes, more than the {LARGEST:,} that are read: move it away", code="too-large"
            )
        while line := file.readline(LONGEST_LINE):
            if line.endswith(b"\n"):
                yield line, _event(line)
            elif len(line) < LONGEST_LINE:  # the last one, which a killed run cuts off
                event = _event(line)
                if event is not None:
                    yield line + b"\n", event
            else:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield b"", None


def _event(line: bytes) -> dict[str, Any] | None:
    """The event of a line, with the numbers that are drawn of its kind; None for anything else."""
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
        file = stack.enter_context(path.open("ab", buffering=0))  # nothing is left to write when the disk is full
    except OSError as error:
        raise BadInput(f"{path} could not be written: {error.strerror or error}", code="unwritable") from None

    def write(event: Event) -> None:
        line = {"kind": event.kind, "step": event.step, "time": round(time.time(), 3), **event.values}
        try:
            _append(file.fileno(), json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}; what was saved before stays",
                code="unwritable",
            ) from None

    return write


def _append(descriptor: int, content: bytes) -> None:
    """Write all of it: a disk may take a part, and say only at the next call that it is full."""
    while content:
        content = content[os.write(descriptor, content) :]


def _tensorboard(stack: ExitStack, out: Path, start: int) -> Writer:
    folder = out / "tensorboard"

    def refusal(error: OSError) -> BadInput:
        return BadInput(
            f"{folder} could not be written: {error.strerror or error}; what was saved before stays", code="unwritable"
        )

    try:
        board = _summary_writer()(folder, purge_step=start + 1)  # what came after is drawn anew
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
    except wandb.Error as error:  # no login, a name that cannot be
        raise BadInput(f"wandb = {quoted(config.wandb)}: {str(error).splitlines()[0]}", code="bad-value") from None
    write_file(remembered, name.encode())
    stack.push(lambda kind, error, trace: run.finish(exit_code=int(error is not None)))

    def write(event: Event) -> None:
        if numbers := _numbers(event):
            run.log(numbers, step=event.step)

    return write


def _remembered(path: Path) -> str:
    """The run's name there, or a new one where the file holds none."""
    name = read_text(path).strip() if path.exists() else ""
    return name if re.fullmatch(r"[0-9a-zA-Z_-]{1,64}", name) else secrets.token_hex(4)


def _numbers(event: Event) -> dict[str, float]:
    return {f"{event.kind}/{key}": value for key, value in event.values.items() if isinstance(value, int | float)}


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput(
            "tensorboard = true needs a package that is not there: pip install tensorboard", code="missing-package"
        ) from None
    return SummaryWriter


def _weights_and_biases(config: TrainConfig) -> Any:
    try:
        import wandb
    except ImportError:
        raise BadInput(
            f"wandb = {quoted(config.wandb)} needs a package that is not there: pip install wandb",
            code="missing-package",
        ) from None
    return wandb
