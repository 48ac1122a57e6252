"""CUDA graphs of vLLM: how many are captured, and the memory that it estimates for them.

From 0.21 on the estimate is subtracted from the KV cache. It captures two graphs of each mode and
multiplies the second's memory (`profile_cudagraph_memory` in `vllm/v1/worker/gpu_model_runner.py`).
"""

from __future__ import annotations

from typing import NamedTuple

MIB = 2**20
LONGEST = 512  # tokens of the largest captured batch
# Read from two logs of Qwen2.5-7B's layers: 0.62 GiB for 51 and 35 graphs (stored file
# 54702752420), 0.08 GiB for 7 and 5 (69428649752). Others: 0.37 for 35 and 19 is 0.36.
PIECEWISE, FULL, SHARED = 4 * MIB, 12 * MIB, 18 * MIB


class Captured(NamedTuple):
    """Numbers of graphs of each mode."""

    piecewise: int
    full: int

    @property
    def estimate(self) -> int:
        """Bytes that vLLM estimates."""
        return SHARED + (self.piecewise - 1) * PIECEWISE + (self.full - 1) * FULL


def captured(requests: int) -> Captured:
    """Return the graphs that a server of `requests` at once captures (`vllm/config/vllm.py`)."""
    longest = min(2 * requests, LONGEST)
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, LONGEST + 1, 16)]
    piecewise = [size for size in sizes if size <= longest]
    return Captured(len(piecewise), len([size for size in piecewise if size <= requests]))
