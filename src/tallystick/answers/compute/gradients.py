"""Which products the backward pass takes, given what is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tallystick.core.entries import Entry
from tallystick.core.tensor_names import template_of

_AFTER_ATTENTION = ("mlp", "experts", "router")


class Gradients:
    """The products that the backward pass takes. If nothing is frozen, all of them."""

    def __init__(self, entries: Sequence[Entry], without: tuple[str, ...]) -> None:
        self.without = without  # name prefixes of the tensors without gradients
        # Stored sinusoidal tables are frozen too, but do not count: tensors before them are
        # trained.
        self.frozen = not all(entry.trainable or entry.role == "position_embedding" for entry in entries)
        # Layer by layer if some tensors are frozen; otherwise rolled up, at any number of layers.
        self.entries = [single for entry in entries for single in entry.unrolled()] if self.frozen else list(entries)
        self.first = next((place for place, entry in enumerate(self.entries) if entry.trainable), len(self.entries))

    def of(self, place: int) -> int:
        """Return the number of gradients of this product: of the weight, and of its input."""
        entry, before = self.entries[place], not self.frozen or place > self.first
        if template_of(entry.name)[0].startswith(self.without):
            return 0
        return int(entry.trainable) + int(before)

    def layers(self, start: int, count: int) -> tuple[int, int]:
        """Return the first layer in the range whose attention has gradients, and their number."""
        if not self.frozen:
            return start, count
        end = start + count
        first = int(min(max(self._first_layer(), start), end))
        return first, end - first

    def _first_layer(self) -> float:
        """Return the first layer whose attention has gradients."""
        if self.first == len(self.entries):
            return math.inf
        entry = self.entries[self.first]
        numbers = template_of(entry.name)[1]
        if not numbers:
            return math.inf if entry.role == "head" else 0
        return int(numbers[0]) + (entry.role in _AFTER_ATTENTION)
