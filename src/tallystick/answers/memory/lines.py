"""One part of what a model takes in memory."""

from __future__ import annotations

from dataclasses import dataclass

# In the order of the table. Not all are there at once: see PHASES in memory.py.
PARTS = (
    "weights",
    "gradients",
    "buckets",  # in which gradients are sent
    "optimizer",
    "activations",
    "logits",
    "recomputed",
    "kv_cache",
    "gathered",  # weights that ranks share
    "reduced",  # a layer in the middle of backward whose weights ranks share
    "backward_buffers",
    "step_buffers",
)


@dataclass(frozen=True)
class Line:
    """One part of the memory."""

    part: str  # one of PARTS
    what: str
    bytes: int
    formula: str  # in numbers
    source: str = ""  # where the formula is from
