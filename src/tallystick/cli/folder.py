"""A current folder that was removed: what needs none still runs, and torch is not loaded there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

from tallystick.errors import BadInput
from tallystick.unforeseen import FOLDER_IS_GONE


class _WithoutTorch:
    """Refuses torch: the MKL in it ends the whole process, without an exception, where there is no current folder."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Say why torch cannot be imported; any other module is left to the other finders."""
        if name == "torch":
            raise BadInput(FOLDER_IS_GONE, code="not-found")


def guard() -> None:
    """Refuse torch for the rest of the run where the current folder is gone."""
    try:
        os.getcwd()
    except OSError:
        sys.meta_path.insert(0, _WithoutTorch())
