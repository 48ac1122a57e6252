"""Handle a removed current folder: commands that need no folder still run, without torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

from tallystick.errors import BadInput
from tallystick.unforeseen import FOLDER_IS_GONE


class _WithoutTorch:
    """An import finder that refuses torch: its MKL ends a process without a current folder."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raise `BadInput` for torch, and leave any other module to the other finders."""
        if name == "torch":
            raise BadInput(FOLDER_IS_GONE, code="not-found")


def guard() -> None:
    """Refuse torch for the rest of the run if the current folder is gone."""
    try:
        os.getcwd()
    except OSError:
        sys.meta_path.insert(0, _WithoutTorch())
