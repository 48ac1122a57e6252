"""Which of PyTorch's kernels multiplies a bfloat16 matrix by one vector fastest here: measured, not known.

Reading the weights is what one token costs, and which kernel reads them faster is up to the processor: of two machines
`torch.mv` was ahead by a sixth to a third on one, `F.linear` by seven tenths on the other, which has no AMX. They add in
another order, so the last bits may differ. The choice is made once in a process for each length of the vector and each number
of threads, and then kept: within a process equal inputs have equal outputs, and another process may choose otherwise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn import functional as F

PROBE = 64_000_000  # bytes of the matrix that is read: more than most caches, as the weights of a model are
ROUNDS = 3  # after one that warms up; the best of them counts, as other processes only slow one down
PLAIN, MARGIN = "linear", 0.9  # what another kernel's time must be of the plain one's


Kernel = Callable[[Tensor, Tensor, Tensor | None], Tensor]  # of a vector (…, in), a matrix (out, in), a bias (out,)


def _mv(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = torch.mv(weight, x.reshape(-1)).view(*x.shape[:-1], -1)
    return y if bias is None else y + bias


KERNELS: Mapping[str, Kernel] = {PLAIN: F.linear, "mv": _mv}


def kernel_for(weight: Tensor) -> Kernel:
    """What multiplies one vector by such a bfloat16 matrix, (out, in), on the CPU."""
    return KERNELS[_measured(weight.shape[1], torch.get_num_threads())]


@cache
def _measured(inputs: int, threads: int) -> str:
    """The name of the fastest kernel for vectors of that length, with the threads that there are: it takes some 50 ms."""
    with torch.inference_mode():
        one = partial(torch.ones, dtype=torch.bfloat16, device="cpu")
        vector, matrix = one(1, inputs), one(max(1, PROBE // (2 * inputs)), inputs)
        return fastest({name: partial(kernel, vector, matrix, None) for name, kernel in KERNELS.items()})


def fastest(ways: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter) -> str:
    """The way that takes least time, where it is ahead of the plain one by more than chance; they take turns."""
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
