"""A linear layer that picks the fastest CPU kernel for a single bfloat16 token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tallystick.models.layers.kernels import kernel_for


class Linear(nn.Linear):
    """An ``nn.Linear`` that multiplies a single bfloat16 token on a CPU with the fastest kernel.

    In float32 the kernels are equally fast; in float16 `F.linear` is faster.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer: (…, inputs) -> (…, outputs)."""
        weight = self.weight
        alone = x.numel() == weight.shape[1] and x.dtype == torch.bfloat16 == weight.dtype and x.device.type == "cpu"
        plain = type(weight) is nn.Parameter  # quantised and sharded weights support F.linear, but not always mv
        if not (alone and plain) or torch.compiler.is_compiling():  # compiled mv is slower than either kernel
            return super().forward(x)
        return kernel_for(weight)(x, weight, self.bias)
