"""The progress of a run, stored in a checkpoint's `progress.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, shown
from tallystick.files.texts import read_json
from tallystick.sources.run_folder import PROGRESS
from tallystick.training.config import TrainConfig
from tallystick.training.corpus.corpus import Corpus

LARGEST_STEP = 10**12


@dataclass
class Progress:
    """Steps taken, and the identity of the data."""

    step: int = 0  # determines the next batch
    data: dict[str, list[Any]] = field(
        default_factory=dict
    )  # token count and digest of each split; {} from an older version


def write_progress(folder: Path, progress: Progress, config: TrainConfig, corpus: Corpus, ranks: int) -> None:
    """Write a run's progress and config to a folder."""
    values = {"step": progress.step, "data": corpus.identity, "ranks": ranks, "config": asdict(config)}
    (folder / PROGRESS).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def read_progress(folder: Path) -> tuple[Progress, dict[str, Any]]:
    """Return a checkpoint's progress and config, with the model's keys as ``model.KEY``.

    Raises:
        BadInput: if the file has another structure, or an impossible step.
    """
    path = folder / PROGRESS
    values = read_json(path)
    said = values if isinstance(values, dict) else {}
    step, config, data = said.get("step"), said.get("config"), said.get("data", {})
    if type(step) is not int or not 0 < step <= LARGEST_STEP:
        raise BadInput(f"{path}: step is {shown(step)}, expected the number of steps taken", code="malformed")
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise BadInput(f"{path}: config is {shown(config)}, expected the run's config", code="malformed")
    if not isinstance(data, dict) or not all(_is_identity(one) for one in data.values()):
        raise BadInput(
            f"{path}: data is {shown(data)}, expected tokens and a digest for each part of the data", code="malformed"
        )
    return Progress(step, data), flat(config)


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the model's keys as ``model.KEY``."""
    model = {f"model.{key}": value for key, value in config["model"].items()}
    return {**{key: value for key, value in config.items() if key != "model"}, **model}


def _is_identity(one: object) -> bool:
    return isinstance(one, list) and len(one) == 2 and type(one[0]) is int and isinstance(one[1], str)
