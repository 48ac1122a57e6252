"""A linear layer that reads one token as fast as its weights come from memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tallystick.models.kernels import kernel_for


class Linear(nn.Linear):
    """An ``nn.Linear`` that multiplies a lone bfloat16 token on a CPU by the kernel that is fastest there.

    In float32 the kernels are equal, in float16 `F.linear` is ahead.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) -> (…, outputs)."""
        weight = self.weight
        alone = x.numel() == weight.shape[1] and x.dtype == torch.bfloat16 == weight.dtype and x.device.type == "cpu"
        plain = type(weight) is nn.Parameter  # quantised and sharded ones know F.linear, and not always mv
        if (
            not (alone and plain) or torch.compiler.is_compiling()
        ):  # what the compiler makes of mv is slower than either
            return super().forward(x)
        return kernel_for(weight)(x, weight, self.bias)
