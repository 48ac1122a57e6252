"""Cross-entropy of a linear head, without ever holding all of its logits.

With a vocabulary of 50,257 the logits are the largest tensor of a small model: 8 × 256 tokens make 412 MB of them, their
gradient as much again, and the log of their softmax a third time. Here they are made for some tokens at a time, and each
chunk leaves behind what the backward pass needs of it: the gradients of what the head read and of its weight. The
products are those that the plain loss has, no more.

PyTorch 2.13 has ``F.linear_cross_entropy``. Chunked, it is exact too, but leaves the compiled graph, smooths no labels, knows
neither a cap nor a z-loss, and took several times as long as the plain loss on the CPUs where we measured it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK = 1 << 25  # logits held at once: 128 MiB in float32


class Options(NamedTuple):
    """What the loss is made of besides the cross-entropy."""

    ignore_index: int = -100  # targets that count for nothing
    z_loss: float = 0.0  # times the squared log of the softmax's denominator (PaLM, section 5)
    label_smoothing: float = 0.0  # of the probability, spread over the vocabulary (Szegedy et al. 2016, section 7)
    scale: float = 1.0  # of the logits
    cap: float | None = None  # the logits are squashed into ± this by a tanh (Gemma 2)
    chunk: int = CHUNK


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor, **options: Any) -> Tensor:
    """The mean loss of ``x @ weight.T`` against `targets`, in float32, or float64 where `x` is.

    Under autocast the products are in its dtype; sums are kept in float32.

    Args:
        x: what the head reads, (…, d).
        weight: of the head, (V, d).
        targets: ids, (…).
        **options: those of `Options`.

    Returns:
        A scalar; no number where every target is ignored, as ``F.cross_entropy`` has it.
    """
    chosen = Options(**options)
    x, targets = x.flatten(0, -2), targets.flatten()
    product = _product_dtype(x)
    keep = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    with torch.autocast(x.device.type, enabled=False):
        return _LinearCrossEntropy.apply(x, weight, targets, chosen, product, keep)


def _product_dtype(x: Tensor) -> torch.dtype:
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are made with the loss: a backward pass of its own would need every logit again."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, targets: Tensor, options: Options, product: torch.dtype, keep: bool
    ) -> Tensor:
        exact = torch.promote_types(x.dtype, torch.float32)
        counted = targets != options.ignore_index
        share = 1 / counted.sum().to(exact)  # of one token in the mean
        inputs, matrix = x.to(product), weight.to(product)
        total = torch.zeros((), dtype=exact, device=x.device)
        x_grad = torch.empty_like(inputs) if keep else None
        weight_grad = torch.zeros_like(weight, dtype=exact) if keep else None
        rows = max(1, options.chunk // len(weight))
        for start in range(0, len(x), rows):
            chunk = slice(start, start + rows)
            part = inputs[chunk]
            loss, grad = _loss_of(part @ matrix.T, targets[chunk], counted[chunk], share, options, exact, keep=keep)
            total += loss
            if grad is not None and x_grad is not None and weight_grad is not None:
                grad = grad.to(product)
                torch.mm(grad, matrix, out=x_grad[chunk])
                if product == exact:
                    weight_grad.addmm_(grad.T, part)
                else:
                    weight_grad += grad.T @ part
        if keep:
            ctx.save_for_backward(x_grad, weight_grad)
            ctx.dtypes = x.dtype, weight.dtype
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x_grad, weight_grad = ctx.saved_tensors
        x_dtype, weight_dtype = ctx.dtypes
        return (x_grad * upstream).to(x_dtype), (weight_grad * upstream).to(weight_dtype), None, None, None, None


def _loss_of(
    logits: Tensor, targets: Tensor, counted: Tensor, share: Tensor, options: Options, exact: torch.dtype, *, keep: bool
) -> tuple[Tensor, Tensor | None]:
    """The part of some tokens in the mean loss, and its gradient by their logits, which are overwritten.

    Args:
        logits: (n, V), of the head alone.
        targets: (n,).
        counted: (n,), whether the target counts.
        share: of one token in the mean.
        options: what the loss is made of.
        exact: the dtype of sums.
        keep: whether the gradient is wanted.
    """
    z, smoothing = logits.to(exact), options.label_smoothing
    if options.scale != 1:
        z = z * options.scale
    if options.cap is not None:
        squashed = torch.tanh(z / options.cap)
        z = squashed * options.cap
    at = torch.where(counted, targets, 0)[:, None]
    share = (counted * share)[:, None]  # (n, 1)
    largest = z.amax(1, keepdim=True)
    target = z.gather(1, at)
    mean = z.mean(1, keepdim=True) if smoothing else 0.0
    powers = (z - largest).exp()  # (n, V)
    denominator = powers.sum(1, keepdim=True)
    log_sum = denominator.log() + largest
    loss = log_sum - (1 - smoothing) * target - smoothing * mean + options.z_loss * log_sum.square()
    loss = (loss * share).sum()
    if not keep:
        return loss, None
    grad = powers * (share * (1 + 2 * options.z_loss * log_sum) / denominator)
    if smoothing:
        grad -= share * (smoothing / z.shape[1])
    grad.scatter_add_(1, at, -(1 - smoothing) * share)
    if options.cap is not None:
        grad *= 1 - squashed.square()
    return loss, grad * options.scale if options.scale != 1 else grad
