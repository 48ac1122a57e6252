"""The folder of a training run, where it is named for the model that the run left in it."""

from __future__ import annotations

import os  # whose exists never raises, as Path.exists does for a folder that may not be read
from pathlib import Path

from tallystick.core.config import CONFIG
from tallystick.errors import BadInput

LOG = "log.jsonl"
MODEL = "model"  # the folder where the trained decoder is left
PROGRESS = "progress.json"  # in each checkpoint


def model_in(path: Path) -> Path:
    """The model of a run's folder; any other path as it is.

    Raises:
        BadInput: for a run that has not ended, which has left no model yet, and for one of the checkpoints that it goes
            on from, which hold the state of its optimizer too.
    """
    if not os.path.isdir(path) or os.path.exists(path / CONFIG):
        return path
    if os.path.exists(path / PROGRESS):
        raise BadInput(
            f"{path} is what a run goes on from; its model is in {path.parent.parent / MODEL} when the run has ended",
            code="incomplete",
        )
    if not os.path.exists(path / LOG):
        return path
    if not os.path.exists(path / MODEL):
        raise BadInput(
            f"{path} is a run that has not ended, and leaves its model in {path / MODEL} when it has:"
            " go on with it, tallystick train --resume auto",
            code="incomplete",
        )
    return path / MODEL
