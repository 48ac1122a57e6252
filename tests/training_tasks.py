"""What the tests of training run in processes of its own."""

from __future__ import annotations

import os
import random
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


def killed_again_and_again(keys: dict[str, Any], kills: int, longest: float) -> int:
    """A run killed at random moments, gone on with each time, and then left alone; returns how often it was alive."""
    chance, alive = random.Random(0), 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            threading.Timer(chance.uniform(0, longest), os.kill, (os.getpid(), signal.SIGKILL)).start()
            train(TrainConfig(**keys), resume="auto")
            os._exit(0)
        chance.random()
        _, status = os.waitpid(child, 0)
        alive += not os.WIFSIGNALED(status)
    train(TrainConfig(**keys), resume="auto")
    return alive


if __name__ == "__main__":  # FOLDER KILLS LONGEST
    sys.path.insert(0, str(Path(__file__).parent))
    from dataclasses import asdict, replace

    from training import small

    torch.set_num_threads(1)  # threads would not be there after a fork
    folder = Path(sys.argv[1])
    config = small(folder, steps=40, save_every=3)
    train(replace(config, out=str(folder / "whole")))
    alive = killed_again_and_again(asdict(config), int(sys.argv[2]), float(sys.argv[3]))
    one, other = ((folder / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "run"))
    sys.stdout.write(f"{int(one == other)} {alive}")
