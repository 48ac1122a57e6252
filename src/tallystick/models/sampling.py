"""Sampling of the next token: temperature, top-k, top-p, min-p, repetition penalty.

The filters map logits (B, V) to new logits; a token that is excluded gets -inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tallystick.arguments import check_fields
from tallystick.errors import BadInput


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; greedy by default.

    Raises:
        BadInput: if a value is out of range.

    >>> logits, seen = torch.tensor([[0.0, 2.0, 1.0]]), torch.zeros(1, 3, dtype=torch.bool)
    >>> Sampling().choose(logits, seen)  # greedy
    tensor([1])
    >>> Sampling(temperature=1.0, top_k=1).choose(logits, seen)
    tensor([1])
    """

    temperature: float = 0.0  # 0 is greedy
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.temperature < math.inf:
            raise BadInput(f"temperature is {self.temperature}, expected 0 or more", code="bad-value")
        if self.top_k is not None and self.top_k < 1:
            raise BadInput(f"top-k is {self.top_k}, expected 1 or more", code="bad-value")
        for name, share in (("top-p", self.top_p), ("min-p", self.min_p)):
            if share is not None and not 0 < share <= 1:
                raise BadInput(f"{name} is {share}, expected a share above 0 and up to 1", code="bad-value")
        if not 0.001 <= self.repetition_penalty <= 1000:  # so that a penalised logit stays finite
            raise BadInput(
                f"repetition penalty is {self.repetition_penalty}, expected 0.001 to 1000; 1 is none", code="bad-value"
            )

    def choose(self, logits: Tensor, seen: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return the next token of each sequence, (B,).

        Args:
            logits: (B, V).
            seen: (B, V), whether the sequence has the token already.
            generator: random generator of the draw.
        """
        logits = logits.float()
        if self.repetition_penalty != 1:
            logits = penalised(logits, seen, self.repetition_penalty)
        if self.temperature < torch.finfo(logits.dtype).tiny:
            return logits.argmax(-1)
        logits = (
            logits - logits.amax(-1, keepdim=True)
        ) / self.temperature  # all ≤ 0, so a low temperature gives -inf, not inf
        if self.top_k is not None:
            logits = top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = min_p(logits, self.min_p)
        return torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]


def top_k(logits: Tensor, count: int) -> Tensor:
    """Keep the `count` most probable tokens, and any as probable as the last of these.

    Args:
        logits: (B, V).
        count: number of tokens to keep, 1 or more.
    """
    least = logits.topk(min(count, logits.shape[-1])).values[:, -1:]
    return logits.masked_fill(logits < least, -math.inf)


def top_p(logits: Tensor, share: float) -> Tensor:
    """Keep the fewest tokens whose probabilities reach `share` (nucleus sampling).

    Holtzman et al. 2020, section 3.1.

    Args:
        logits: (B, V).
        share: share of the probability, above 0 and up to 1.
    """
    ordered, order = logits.sort(descending=True, stable=True)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities  # of all more probable tokens
    left_out = before >= share
    left_out[:, 0] = False  # keep at least one token
    return logits.masked_fill(left_out.scatter(-1, order, left_out), -math.inf)


def min_p(logits: Tensor, share: float) -> Tensor:
    """Keep tokens at least `share` times as probable as the most probable one.

    Nguyen et al. 2024, section 3.

    Args:
        logits: (B, V).
        share: fraction of the highest probability, above 0 and up to 1.
    """
    return logits.masked_fill(logits < logits.amax(-1, keepdim=True) + math.log(share), -math.inf)


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens already seen less likely (Keskar et al. 2019, section 4.1).

    Positive logits are divided by the penalty, others multiplied.

    Args:
        logits: (B, V).
        seen: (B, V), whether the sequence has the token already.
        penalty: above 1 makes repetition less likely, 1 changes nothing.
    """
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)
