"""What transformers builds from a preset, on the meta device."""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers

from holding import Truth
from reference import read, truth


def built(values: dict[str, Any]) -> Truth:
    """Return what the model holds: of the class that the preset names, or of its type."""
    classes: list[str] = values.get("architectures", [])
    values = {key: value for key, value in copy.deepcopy(values).items() if key != "architectures"}
    if not classes:
        return truth(values)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        return read(getattr(transformers, classes[0])(config))


# -- what is measured once, and committed ---------------------------------------------------------


def held(values: dict[str, Any]) -> str:
    """The digest of what the preset's model holds."""
    return built(values).digest
