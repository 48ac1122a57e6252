"""`torch.compile` with a clear error if a CPU has no C++ compiler."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import torch

from tallystick.errors import BadInput


def compiled(what: Any, device: torch.device, **options: Any) -> Any:
    """Return a module or function that compiles at its first call.

    Args:
        what: module or function.
        device: device it will run on.
        **options: options of `torch.compile`.

    Raises:
        BadInput: if the device is a CPU and there is no C++ compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")  # as torch chooses it
    if device.type == "cpu" and shutil.which(compiler) is None:
        raise BadInput(
            f"compiling for a CPU needs a C++ compiler, but {compiler} was not found: install it, or set CXX",
            code="missing-package",
        )
    return torch.compile(what, **options)
