"""Measure the peak memory of a run, less what was in use before it."""

from __future__ import annotations

import re
from pathlib import Path

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """Peak memory of a CUDA device's allocator, or of this process on Linux; else unknown."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before = 0
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            return
        try:
            _CLEAR.write_text("5")  # resets the high-water mark
            self._before = _kilobytes("VmRSS") * 1024
        except OSError:
            self._before = -1

    @property
    def bytes(self) -> int | None:
        """Peak in bytes since creation; of a process, less what it held then. None if unknown."""
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        return None if self._before < 0 else _kilobytes("VmHWM") * 1024 - self._before


def _kilobytes(key: str) -> int:
    found = re.search(rf"^{key}:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
