"""Checkpoints in each form of torch.save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

FORMS = pytest.mark.parametrize("zipped", [True, False], ids=["today's form", "the old form"])


def save(path: Path, value: Any, *, zipped: bool = True) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=zipped)
    return path
