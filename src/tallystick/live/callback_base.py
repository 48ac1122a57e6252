"""What the callbacks of trainers have in common: the same check at each of a run's turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.live.check import NotTied, assert_tied

if TYPE_CHECKING:
    from torch import nn


def check_model(model: nn.Module | None, when: str) -> None:
    """Raise `NotTied` where tensors that the model means to be one are not; a model that means none passes."""
    if model is None:
        return
    try:
        assert_tied(model)
    except BadInput:
        return  # it does not tell which tensors are meant, so none can be missed
    except NotTied as error:
        raise NotTied(f"{when}: {error}") from None


def check_folder(folder: Path, when: str) -> None:
    """Raise `NotTied` where a saved checkpoint contradicts its config."""
    if not (folder / "config.json").exists():
        return
    from tallystick.answers.ties.ties import ties
    from tallystick.sources import read

    try:
        answer = ties(read(folder, {}, keep=True))
    except BadInput:
        return  # weights in a format that is not read
    if answer.verdict == "contradiction":
        raise NotTied(f"{when}, {folder}: {'. '.join(problem.message for problem in answer.problems)}")
