"""What the tests of training run in processes of its own."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from tallystick.training.config import TrainConfig
from tallystick.training.run import Event
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


def killed_again_and_again(config: TrainConfig, kills: int, longest: float, whole: bytes) -> tuple[int, int]:
    """Runs killed at random moments, gone on with each time to the end, and begun anew.

    Returns:
        How many came to their end, and how many of these left other bits than one that was never killed.
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


if __name__ == "__main__":  # FOLDER KILLS LONGEST
    from dataclasses import replace

    from training import small

    torch.set_num_threads(1)  # threads would not be there after a fork
    folder = Path(sys.argv[1])
    config = small(folder, steps=40, save_every=3)
    alone = train(replace(config, out=str(folder / "whole")))
    whole = (Path(str(alone.model)) / "model.safetensors").read_bytes()
    ended, wrong = killed_again_and_again(config, int(sys.argv[2]), float(sys.argv[3]), whole)
    sys.stdout.write(f"{ended} {wrong}")
