"""The gradient of a tied embedding in one buffer: head and embedding add to the same tensor.

Autograd would allocate a full-size gradient for each use and add the two. But the embedding's
gradient is nonzero only in the rows of the tokens that were read.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def one_gradient(embedding: nn.Module, head: nn.Module) -> bool:
    """Return whether both share one trained Parameter, and the embedding is plain, without hooks.

    If they are wrapped, hooked or sharded on their own, they must be called, and autograd adds.
    """
    return (
        torch.is_grad_enabled()
        and type(embedding) is nn.Embedding
        and isinstance(head, nn.Linear)
        and type(head.weight) is nn.Parameter
        and head.weight is embedding.weight
        and head.weight.requires_grad
        and not (embedding._forward_hooks or embedding._forward_pre_hooks)
    )


def looked_up(weight: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of some tokens, and the matrix for the head to read once.

    The matrix's gradient buffer becomes the gradient of both uses: do not use it afterwards.

    Args:
        weight: (V, d).
        tokens: ids, (B, T).
    """
    rows, matrix = _Lookup.apply(weight, tokens)
    return rows, matrix


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(tokens)
        return nn.functional.embedding(tokens, weight), weight.view_as(weight)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, rows: Tensor, matrix: Tensor) -> tuple[Tensor, None]:
        (tokens,) = ctx.saved_tensors
        return matrix.index_add_(0, tokens.flatten(), rows.flatten(0, -2).to(matrix.dtype)), None
