"""What a model holds: its tensors, which of them are one, how many elements that makes; and all of
it as one digest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True)
class Truth:
    """What a built model holds."""

    shapes: dict[str, tuple[int, ...]]  # every name of a parameter, tied ones under each
    ties: set[frozenset[str]]  # names of one Parameter object
    buffers: dict[str, tuple[int, ...]]  # those that the state dict holds
    total: int  # elements of distinct Parameter objects
    trainable: int  # of those that gradients change

    @property
    def digest(self) -> str:
        """The first 64 bits of the SHA-256 of all that, in any order of names."""
        ties = sorted(sorted(names) for names in self.ties)
        whole = json.dumps([self.shapes, ties, self.buffers, self.total, self.trainable], sort_keys=True)
        return sha256(whole.encode()).hexdigest()[:16]
