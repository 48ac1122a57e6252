"""Find the trained model in the folder of a training run."""

from __future__ import annotations

import os  # os.path.exists never raises; Path.exists raises for a folder without read permission
from pathlib import Path

from tallystick.core.config import CONFIG
from tallystick.errors import BadInput

LOG = "log.jsonl"
MODEL = "model"  # the folder that holds the trained decoder
PROGRESS = "progress.json"  # in each checkpoint


def model_in(path: Path) -> Path:
    """Return the model folder inside a run's folder; return any other path unchanged.

    Raises:
        BadInput: if the run has not ended and so has no model yet, or `path` is one of its
            checkpoints, which also hold optimizer state.
    """
    if not os.path.isdir(path) or os.path.exists(path / CONFIG):
        return path
    if os.path.exists(path / PROGRESS):
        raise BadInput(
            f"{path} is a checkpoint for resuming; the run's model will be in {path.parent.parent / MODEL}",
            code="incomplete",
        )
    if not os.path.exists(path / LOG):
        return path
    if not os.path.exists(path / MODEL):
        raise BadInput(
            f"{path} is an unfinished run, which will write its model to {path / MODEL}: resume it with"
            " tallystick train --resume auto",
            code="incomplete",
        )
    return path / MODEL
