"""The gradients of the two uses of a vocabulary matrix: the lookup and the logits."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tallystick.models.decoder import Decoder
from tallystick.models.loss import linear_cross_entropy


class Uses(NamedTuple):
    """What one batch gives the matrix through each of its uses."""

    embedding: float  # norm of the gradient through the lookup
    head: float  # norm of the gradient through the logits
    rows: float  # share of rows with a gradient through the lookup; through the logits all have one
    cosine: float  # of the two gradients


def uses(decoder: Decoder, tokens: Tensor, targets: Tensor) -> Uses:
    """Measure the gradients of the lookup and of the logits apart, tied or not.

    Args:
        decoder: a decoder, whose own gradients are left as they are.
        tokens: ids, (B, T).
        targets: next ids, (B, T).

    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> round(uses(decoder, torch.tensor([[1, 2]]), torch.tensor([[2, 3]])).rows, 2)  # 2 rows of 50
    0.04
    """
    c = decoder.config
    bottom, top = (one.weight.detach().clone().requires_grad_() for one in (decoder.embedding, decoder.head))
    with torch.enable_grad():
        hidden = decoder.hidden(tokens, embedded=nn.functional.embedding(tokens, bottom))
        loss = linear_cross_entropy(hidden, top, targets, scale=c.logit_scale, cap=c.logit_cap)
        low, high = torch.autograd.grad(loss, (bottom, top))
    cosine = nn.functional.cosine_similarity(low.flatten(), high.flatten(), dim=0)
    return Uses(float(low.norm()), float(high.norm()), float(low.any(1).float().mean()), float(cosine))
