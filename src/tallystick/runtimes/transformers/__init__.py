"""The runtime transformers in eager mode, with `AutoModelForCausalLM.from_config` models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.core.anatomy import Attending, Heads, Recurring, RunningPart
from tallystick.runtimes import Cached, Carried, Load
from tallystick.runtimes.transformers.cache import cached, carried
from tallystick.runtimes.transformers.prefill import alive
from tallystick.runtimes.transformers.recompute import recomputed_block, recomputed_scores
from tallystick.runtimes.transformers.rules import Step
from tallystick.runtimes.transformers.saved import saved
from tallystick.runtimes.transformers.traits import AttentionTraits, traits_of


class EagerModel(NamedTuple):
    """A model of one type in transformers; methods as in `tallystick.runtimes.Running`."""

    traits: AttentionTraits

    def cached(self, attending: Sequence[Attending], sequence: int) -> tuple[Cached, ...]:
        """Return the KV cache of one sequence after `sequence` tokens: `DynamicCache`."""
        return cached(attending, sequence, self.traits)

    def carried(self, recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
        """Return the recurrent states of one sequence."""
        return carried(recurring)

    def saved(self, parts: Sequence[RunningPart], load: Load, *, learned: bool) -> Iterator[tuple[str, int, int]]:
        """Yield the tensors that torch's autograd saves in the forward pass."""
        scores = "again" if load.recompute == "selective" else "kept"
        return saved(parts, self._step(load, scores), whole_blocks=load.recompute == "full", learned=learned)

    def recomputed(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, int]:
        """Return the bytes of a recomputed block, or of its scores, and the most gradients add."""
        step = self._step(load, "kept")
        size, added = recomputed_block(parts, step) if load.recompute == "full" else recomputed_scores(parts, step)
        return int(size), int(added)

    def alive(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, str]:
        """Return the peak bytes of tensors held by local variables, without gradients."""
        return alive(parts, self._step(load, "kept"))

    def pairs(self, heads: Heads, window: int | None, sequence: int) -> int:
        """Return `sequence` squared: all pairs are multiplied, and the mask is applied afterwards.

        A fused kernel skips blocks of masked pairs. Its FLOPs are still counted in full, as
        `torch.utils.flop_counter` does.
        """
        return sequence**2

    def _step(self, load: Load, by_hand: str) -> Step:
        scores = "fused" if load.attention == "flash" else by_hand
        return Step(load.batch, load.sequence, load.width, load.mixed, scores, self.traits)


class Transformers(NamedTuple):
    """The runtime, as described in `tallystick.runtimes.Runtime`."""

    name: str = "transformers"
    release: str = "5.23"

    def running(self, model_type: str, values: Mapping[str, Any]) -> EagerModel:
        """Return how transformers runs a type; the book's types run by the book's own code."""
        return EagerModel(traits_of(model_type, values))


TRANSFORMERS = Transformers()
