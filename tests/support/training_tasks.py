"""What the tests of training run in processes of its own."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from tallystick.errors import BadInput
from tallystick.training.checkpoints import checkpoint
from tallystick.training.config import TrainConfig
from tallystick.training.run import Run, prepared
from tallystick.training.state import Event
from tallystick.training.train import train


def trained(keys: dict[str, Any], resume: str = "never") -> dict[str, Any]:
    """A whole run on every rank: the losses of its steps, and how it ended."""
    losses: list[float] = []

    def shown(event: Event) -> None:
        if event.kind == "step":
            losses.append(event.values["loss"])

    outcome = train(TrainConfig(**keys), resume=resume, planned=lambda plan: shown)
    return {"losses": losses, "model": outcome.model, "validation": outcome.validation_loss}


def trained_in_turn(runs: list[tuple[dict[str, Any], str]]) -> list[dict[str, Any]]:
    """Several runs in the same processes, which take longer to start than a run takes."""
    return [trained(keys, resume) for keys, resume in runs]


def refused(keys: dict[str, Any], full: dict[str, str]) -> str:
    """Why a rank does not train, where a part of its save finds the disk full: a part for each
    rank, by its number.
    """
    place = full.get(os.environ.get("RANK", "0"))

    def no_room(*arguments: Any, **keywords: Any) -> None:
        raise OSError("No space left on device")

    if place:
        setattr(checkpoint, place, no_room)
    try:
        train(TrainConfig(**keys))
    except BadInput as error:
        return str(error)
    return ""


def killed_again_and_again(config: TrainConfig, kills: int, longest: float, whole: bytes) -> tuple[int, int]:
    """Runs killed at random moments, gone on with each time to the end, and begun anew.

    Returns:
        How many came to their end, and how many of these left other bits than one that was never
        killed.
    """
    chance, killed, ended, wrong = random.Random(0), 0, 0, 0
    while killed < kills:
        child = os.fork()
        if child == 0:
            threading.Timer(chance.uniform(0, longest), os.kill, (os.getpid(), signal.SIGKILL)).start()
            train(config, resume="auto")
            os._exit(0)
        chance.random()
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        model = Path(config.out) / "model" / "model.safetensors"
        if not os.WIFSIGNALED(status):
            ended += 1
            wrong += model.read_bytes() != whole
            shutil.rmtree(Path(config.out) / "checkpoints")
            shutil.rmtree(Path(config.out) / "model")
    train(config, resume="auto")
    return ended + 1, wrong + (model.read_bytes() != whole)


def killed_in_a_save(config: TrainConfig, place: str, whole: bytes) -> list[tuple[str, str, int, bool]]:
    """A run killed before and after a part of its save of step 4, which is a function that the
    module of checkpoints calls.

    Returns:
        The part, before or after, the step at which the run went on, and whether it ended with the
        same bits.
    """
    found = []
    for when in ("before", "after"):
        child = os.fork()
        if child == 0:
            _saved_and_killed(prepared(config), place, when)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        newest, torn = checkpoint.latest(Path(config.out))
        assert newest is not None
        assert not torn
        outcome = train(config, resume="auto")
        same = (Path(str(outcome.model)) / "model.safetensors").read_bytes() == whole
        found.append((place, when, checkpoint.step_in(newest), same))
        shutil.rmtree(config.out)
    return found


def _saved_and_killed(run: Run, place: str, when: str) -> None:
    part = getattr(checkpoint, place)

    def killed(*arguments: Any, **keywords: Any) -> Any:
        if when == "before" and run.progress.step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        result = part(*arguments, **keywords)
        if run.progress.step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(checkpoint, place, killed)
    list(run.events())


if __name__ == "__main__":  # FOLDER KILLS LONGEST, or FOLDER PLACE…
    from dataclasses import replace

    from training import small

    torch.set_num_threads(1)  # threads would not be there after a fork
    folder = Path(sys.argv[1])
    saves = not sys.argv[2].isdecimal()
    config = small(folder, steps=6, save_every=2) if saves else small(folder, steps=20, save_every=3)
    alone = train(replace(config, out=str(folder / "whole")))
    whole = (Path(str(alone.model)) / "model.safetensors").read_bytes()
    if saves:
        seen = [one for place in sys.argv[2:] for one in killed_in_a_save(config, place, whole)]
        sys.stdout.write(json.dumps(seen))
        sys.exit()
    ended, wrong = killed_again_and_again(config, int(sys.argv[2]), float(sys.argv[3]), whole)
    sys.stdout.write(f"{ended} {wrong}")
