"""One part of what a model takes in memory."""

from __future__ import annotations

from dataclasses import dataclass

# In the order of the table. `recomputed`, `backward_buffers` and `step_buffers` are there for a moment: see PHASES in memory.py.
PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "recomputed",
    "kv_cache",
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
