"""The checks that the trainers' callbacks share: a live model, and a saved folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.live.check import NotTied, assert_tied

if TYPE_CHECKING:
    from torch import nn


def check_model(model: nn.Module | None, when: str) -> None:
    """Raise `NotTied` if ties that the model declares are broken.

    Args:
        model: a module, wrapped or not; None is skipped.
        when: point of the run, for the message.
    """
    if model is None:
        return
    try:
        assert_tied(model)
    except BadInput:
        return  # nothing is declared as tied, so nothing can be broken
    except NotTied as error:
        raise NotTied(f"{when}: {error}") from None


def check_folder(folder: Path, when: str) -> None:
    """Raise `NotTied` if a saved checkpoint contradicts its config.

    Args:
        folder: folder of the checkpoint; skipped without a config.json.
        when: point of the run, for the message.
    """
    if not (folder / "config.json").exists():
        return
    from tallystick.answers.ties.ties import ties
    from tallystick.sources import read

    try:
        answer = ties(read(folder, {}, keep=True))
    except BadInput:
        return  # the weights' format cannot be read
    if answer.verdict == "contradiction":
        raise NotTied(f"{when}, {folder}: {'. '.join(problem.message for problem in answer.problems)}")
