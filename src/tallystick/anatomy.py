"""How the parts of a model run, beside the tensors that they hold: how many heads, which positions they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

# How far layers see, the own position included, None for all before it, and how many layers in a row see so far:
# a pattern that repeats over the layers. Runs, since a config may state 10^12 layers.
Windows: TypeAlias = Sequence[tuple[int | None, int]]

EVERYTHING: Windows = ((None, 1),)


class Heads(NamedTuple):
    """The heads of one attention, and which positions they see."""

    queries: int  # heads of queries
    keys: int  # heads of keys and of values: as many (multi-head), fewer (grouped), one (multi-query)
    size: int  # elements of a query or key in one head
    values: int | None = None  # elements of a value in one head; None is `size`
    windows: Windows = EVERYTHING
    latent: int | None = None  # elements that stand for all keys and values of a token, where they are made of fewer

    @property
    def value_size(self) -> int:
        """Elements of a value in one head."""
        return self.size if self.values is None else self.values

    @property
    def kept(self) -> int:
        """Elements that a cache keeps of one token in one layer."""
        return self.keys * (self.size + self.value_size) if self.latent is None else self.latent


class Attending(NamedTuple):
    """The layers of one stack that attend alike; `name` holds ``{}`` for their numbers."""

    name: str
    start: int  # number of the first layer
    layers: int
    heads: Heads

    def windows(self) -> dict[int | None, int]:
        """How many of the layers see how far.

        >>> Attending("h.{}", 0, 5, Heads(2, 2, 4, windows=((128, 1), (None, 1)))).windows()
        {128: 3, None: 2}
        """
        period = sum(int(run) for _, run in self.heads.windows)
        counts: dict[int | None, int] = {}
        offset = 0

        def before(layer: int, run: int) -> int:
            """Layers below this one that fall into the run at `offset`."""
            whole, rest = divmod(layer, period)
            return whole * run + min(max(rest - offset, 0), run)

        for window, run in self.heads.windows:
            if found := before(self.start + self.layers, int(run)) - before(self.start, int(run)):
                counts[window] = counts.get(window, 0) + found
            offset += int(run)
        return counts
