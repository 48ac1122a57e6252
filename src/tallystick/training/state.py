"""What a training run holds between its steps, and what it reports of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from tallystick.models.decoder import Decoder
from tallystick.training.checkpoints.progress import Progress
from tallystick.training.config import TrainConfig
from tallystick.training.corpus.corpus import Corpus
from tallystick.training.ranks import Ranks


class Event(NamedTuple):
    """Something that happened after a step.

    The kind is ``step``, ``evaluated``, ``sample``, ``saved``, ``stopped`` or ``done``.
    """

    kind: str
    step: int  # steps taken so far
    values: dict[str, Any]


@dataclass
class RunState:
    """What a checkpoint saves and restores, and what that needs to know."""

    config: TrainConfig
    ranks: Ranks
    corpus: Corpus
    decoder: Decoder  # its tensor names are the checkpoints'
    model: nn.Module  # the decoder as called: wrapped, compiled
    optimizers: list[torch.optim.Optimizer]
    progress: Progress = field(default_factory=Progress, kw_only=True)
