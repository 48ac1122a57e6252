"""One part of what a model takes in memory."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "kv_cache")


@dataclass(frozen=True)
class Line:
    """One part of the memory."""

    part: str  # one of PARTS
    what: str
    bytes: int
    formula: str  # in numbers
    source: str = ""  # where the formula is from
