"""Choose the fastest CPU kernel for a bfloat16 matrix-vector product, by measuring.

One generated token costs one read of the weights, and the fastest kernel depends on the
processor. On one machine `torch.mv` was a sixth to a third faster; on another, without AMX,
`F.linear` was seven tenths faster. The kernels sum in different orders, so the last bits may
differ. A process chooses once for each vector length and number of threads and keeps the
choice. So equal inputs give equal outputs within a process, but not between processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn import functional as F

PROBE = 64_000_000  # bytes of the matrix that is read: more than most caches, like a model's weights
ROUNDS = 3  # after one warm-up; the best counts, since other processes only add time
PLAIN, MARGIN = "linear", 0.9  # another kernel must take less than MARGIN times the plain one's time


Kernel = Callable[[Tensor, Tensor, Tensor | None], Tensor]  # of a vector (…, in), a matrix (out, in), a bias (out,)


def _mv(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = torch.mv(weight, x.reshape(-1)).view(*x.shape[:-1], -1)
    return y if bias is None else y + bias


KERNELS: Mapping[str, Kernel] = {PLAIN: F.linear, "mv": _mv}


def kernel_for(weight: Tensor) -> Kernel:
    """Return the kernel for one vector and this bfloat16 weight (out, in) on the CPU."""
    return KERNELS[_measured(weight.shape[1], torch.get_num_threads())]


@cache
def _measured(inputs: int, threads: int) -> str:
    """Return the fastest kernel's name for vectors of this length; measuring takes some 50 ms."""
    with torch.inference_mode():
        one = partial(torch.ones, dtype=torch.bfloat16, device="cpu")
        vector, matrix = one(1, inputs), one(max(1, PROBE // (2 * inputs)), inputs)
        return fastest({name: partial(kernel, vector, matrix, None) for name, kernel in KERNELS.items()})


def fastest(ways: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter) -> str:
    """Return the name of the fastest kernel, or PLAIN if none is clearly faster.

    Args:
        ways: functions to time, by name; they take turns.
        clock: returns the time in seconds.
    """
    seconds = dict.fromkeys(ways, math.inf)
    for turn in range(ROUNDS + 1):
        for name, way in ways.items():
            start = clock()
            way()
            took = clock() - start
            if turn:
                seconds[name] = min(seconds[name], took)
    best = min(seconds, key=lambda name: seconds[name])
    return best if seconds[best] < MARGIN * seconds[PLAIN] else PLAIN
