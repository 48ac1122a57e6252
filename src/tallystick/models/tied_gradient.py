"""The gradient of a tied matrix in one buffer: what the head made of it takes in what the embedding adds.

Autograd would make a gradient as large as the matrix for each use and add the two, though of the embedding's only the
rows of the tokens that were read are not zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def one_gradient(embedding: nn.Module, head: nn.Module) -> bool:
    """Whether the two hold one Parameter that is trained, and nothing else happens where they are called.

    Where they are wrapped, hooked or sharded on their own, calling them matters, and autograd adds as ever.
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
    """The rows of some tokens, and the matrix as the head is to read it, once.

    The gradient by that matrix becomes the gradient by both, so whoever makes it must not use it afterwards.

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
