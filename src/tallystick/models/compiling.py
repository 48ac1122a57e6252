"""`torch.compile`, refused in one line where the machine has no compiler for what it writes."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import torch

from tallystick.errors import BadInput


def compiled(what: Any, device: torch.device, **options: Any) -> Any:
    """A module or a function that is compiled when it is first called; `options` are those of `torch.compile`.

    Raises:
        BadInput: without a C++ compiler, for a CPU.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")  # as torch chooses it
    if device.type == "cpu" and shutil.which(compiler) is None:
        raise BadInput(
            f"to compile for a CPU takes a C++ compiler, and {compiler} is not found: install it, or name another in CXX",
            code="missing-package",
        )
    return torch.compile(what, **options)
