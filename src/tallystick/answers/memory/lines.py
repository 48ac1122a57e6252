"""One line of the memory table."""

from __future__ import annotations

from dataclasses import dataclass

# In the order of the table. Not all exist at the same time: see PHASES in memory.py.
PARTS = (
    "weights",
    "gradients",
    "buckets",  # DDP's buckets for the gradients' all-reduce
    "optimizer",
    "activations",
    "logits",
    "recomputed",
    "kv_cache",
    "gathered",  # all-gathered weights
    "reduced",  # the current layer in the middle of backward, with sharded weights
    "backward_buffers",
    "step_buffers",
)


@dataclass(frozen=True)
class Line:
    """One line of the memory table."""

    part: str  # one of PARTS
    what: str
    bytes: int
    formula: str  # in numbers
    source: str = ""  # of the formula

    @property
    def label(self) -> str:
        """What it is, in a table without parts: "attention" alone reads as its weights.

        >>> Line("activations", "attention", 0, "").label
        'activations: attention'
        """
        return f"activations: {self.what}" if self.part == "activations" and self.part not in self.what else self.what
