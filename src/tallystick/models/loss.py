"""Cross-entropy of an LM head in chunks: the logits are never held whole.

With a vocabulary of 50,257 the logits are the largest tensor of a small model: 412 MB for
8 × 256 tokens. Their gradient takes as much again, and so does their log-softmax. Here the
logits are computed for a chunk of tokens at a time. Each chunk adds to the gradients of the
head's input and of its weight, which are all that the backward pass needs. The number of
matrix products equals the plain loss's; everything else is done in place.

PyTorch 2.13 has ``F.linear_cross_entropy``. Chunked, it is exact too, but it leaves the compiled
graph, and has no label smoothing, no cap and no z-loss. It took several times as long as the
plain loss on the CPUs where we measured it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 1 << 26
ROWS = 512  # of the weight's gradient added at a time
BLOCK = 1 << 18  # logits turned into gradients at a time: they fit a core's cache


class Options(NamedTuple):
    """Options of the loss beyond the plain cross-entropy."""

    ignore_index: int = -100  # targets that are ignored
    z_loss: float = 0.0  # factor of the squared log of the softmax's denominator (PaLM, section 5)
    label_smoothing: float = 0.0  # probability spread over the vocabulary (Szegedy et al. 2016, section 7)
    scale: float = 1.0  # factor of the logits
    cap: float | None = None  # the logits are capped to ± this by a tanh (Gemma 2)
    chunk: int = CHUNK  # bytes of logits held at once


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor, **options: Any) -> Tensor:
    """Return the mean loss of ``x @ weight.T`` against `targets`.

    Under autocast the products are in its dtype; sums are kept in float32.

    Args:
        x: input of the LM head, (…, d).
        weight: weight of the LM head, (V, d).
        targets: ids, (…).
        **options: fields of `Options`.

    Returns:
        A scalar in float32, or float64 if `x` is; NaN if every target is ignored, as in
        ``F.cross_entropy``.

    >>> x, weight, targets = torch.zeros(2, 4), torch.ones(8, 4), torch.tensor([1, 7])
    >>> linear_cross_entropy(x, weight, targets)  # equal logits: ln 8
    tensor(2.0794)
    """
    x, targets = x.flatten(0, -2), targets.flatten()
    product = _product_dtype(x)
    keep = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    chosen = Options(**options)
    if torch.compiler.is_compiling():
        loss: Tensor = _one_node(x, weight, targets, product, keep, *chosen)[0]
        return loss
    return _LinearCrossEntropy.apply(x, weight, targets, product, keep, chosen)


def _product_dtype(x: Tensor) -> torch.dtype:
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _LinearCrossEntropy(torch.autograd.Function):
    """The loss with gradients made in the forward pass: a backward would need all logits again."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, targets: Tensor, product: torch.dtype, keep: bool, options: Options
    ) -> Tensor:
        loss, *grads = _loss_and_gradients(x, weight, targets, product, keep, options)
        ctx.save_for_backward(*grads)
        ctx.dtypes = x.dtype, weight.dtype
        return loss

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        grads = ctx.saved_tensors
        if upstream.device.type != "cpu" or upstream != 1:  # if 1, skip a pass over the weight
            grads = [grad * upstream for grad in grads]
        x_grad, weight_grad = (grad.to(dtype) for grad, dtype in zip(grads, ctx.dtypes, strict=True))
        return x_grad, weight_grad, None, None, None, None


# The compiler would unroll all chunks and keep each one's part of the weight gradient until
# the end. So the chunks are one node of its graph.


@torch.library.custom_op("tallystick::linear_cross_entropy", mutates_args=())  # type: ignore[untyped-decorator]
def _one_node(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    product: torch.dtype,
    keep: bool,
    ignore_index: int,
    z_loss: float,
    label_smoothing: float,
    scale: float,
    cap: float | None,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor]:
    options = Options(ignore_index, z_loss, label_smoothing, scale, cap, chunk)
    return _loss_and_gradients(x, weight, targets, product, keep, options)


@_one_node.register_fake  # type: ignore[untyped-decorator]
def _(x: Tensor, weight: Tensor, targets: Tensor, product: torch.dtype, keep: bool, *_: Any) -> tuple[Tensor, ...]:
    exact = torch.promote_types(x.dtype, torch.float32)
    loss = x.new_empty((), dtype=exact)
    if not keep:
        return loss, x.new_empty(0), x.new_empty(0)
    return loss, torch.empty_like(x, dtype=product), torch.empty_like(weight, dtype=exact)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])
    ctx.dtypes = inputs[0].dtype, inputs[1].dtype


def _hand_back(ctx: Any, upstream: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    x_grad, weight_grad = (
        (grad * upstream).to(dtype) for grad, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
    )
    return x_grad, weight_grad, *[None] * 9


_one_node.register_autograd(_hand_back, setup_context=_remember)


def _loss_and_gradients(
    x: Tensor, weight: Tensor, targets: Tensor, product: torch.dtype, keep: bool, options: Options
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss and, with `keep`, the gradients of head input (n, d) and weight (V, d)."""
    exact = torch.promote_types(x.dtype, torch.float32)
    counted = targets != options.ignore_index
    share = (counted / counted.sum()).to(exact)[:, None]  # weight of each token in the mean
    targets = torch.where(counted, targets, 0)[:, None]
    total = torch.zeros((), dtype=exact, device=x.device)
    with torch.autocast(x.device.type, enabled=False):
        inputs, matrix = x.to(product), weight.to(product)
        x_grad = torch.empty_like(inputs) if keep else x.new_empty(0)
        weight_grad = torch.zeros_like(weight, dtype=exact) if keep else x.new_empty(0)
        rows = _rows(len(x), matrix, options.chunk)
        for start in range(0, len(x), rows):
            part = inputs[start : start + rows]
            logits = part @ matrix.T
            height = _block(logits)
            for top in range(0, len(logits), height):
                block = logits[top : top + height]
                tokens = slice(start + top, start + top + len(block))
                total += _descend(block, targets[tokens], share[tokens], options, exact, keep=keep)
            if not keep:
                continue
            x_grad[start : start + rows] = logits @ matrix
            if product == exact:
                weight_grad.addmm_(logits.T, part)
            else:
                added = logits.T @ part
                for top in range(0, len(added), ROWS):  # cast a few rows at a time, in cache
                    weight_grad[top : top + ROWS] += added[top : top + ROWS]
    return total, x_grad, weight_grad


def _rows(count: int, matrix: Tensor, chunk: int) -> int:
    """Return the tokens per chunk; chunks are equal, so that none is too small to be fast."""
    most: int = max(1, chunk // (len(matrix) * matrix.element_size()))
    chunks = max(1, -(-count // most))
    return max(1, -(-count // chunks))


def _block(logits: Tensor) -> int:
    """Return the tokens turned into gradients at a time; all of them on an accelerator."""
    if logits.device.type != "cpu":
        return len(logits)
    height: int = max(1, BLOCK // logits.shape[1])
    return height


def _descend(
    logits: Tensor, targets: Tensor, share: Tensor, options: Options, exact: torch.dtype, *, keep: bool
) -> Tensor:
    """Return some tokens' part of the mean loss; overwrite their logits with its gradient.

    Args:
        logits: (n, V), output of the head, before scale and cap.
        targets: (n, 1).
        share: (n, 1), weight of each token in the mean; 0 if the target is ignored.
        options: options of the loss.
        exact: dtype of the sums.
        keep: whether to compute gradients; if not, the logits are useless afterwards.
    """
    z, smoothing = logits.to(exact), options.label_smoothing
    if options.scale != 1:
        z *= options.scale
    if options.cap is not None:
        squashed = torch.tanh(z / options.cap)
        torch.mul(squashed, options.cap, out=z)
    largest = z.amax(1, keepdim=True)
    target = z.gather(1, targets)
    mean = z.mean(1, keepdim=True) if smoothing else 0.0
    powers = z.sub_(largest).exp_()
    denominator = powers.sum(1, keepdim=True)
    log_sum = denominator.log() + largest
    loss = log_sum - (1 - smoothing) * target - smoothing * mean + options.z_loss * log_sum.square()
    loss = (loss * share).sum()
    if not keep:
        return loss
    grad = powers.mul_(share * (1 + 2 * options.z_loss * log_sum) / denominator)
    if smoothing:
        grad -= share * (smoothing / grad.shape[1])
    grad.scatter_add_(1, targets, -(1 - smoothing) * share)
    if options.cap is not None:
        grad *= 1 - squashed.square()
    if options.scale != 1:
        grad *= options.scale
    logits.copy_(grad)
    return loss
