"""transformers, run eagerly: each operation of its code by torch, as `AutoModelForCausalLM.from_config` gives a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.core.anatomy import Attending, Heads, Recurring, RunningPart
from tallystick.runtimes import Cached, Carried, Load
from tallystick.runtimes.transformers.cache import cached, carried
from tallystick.runtimes.transformers.prefill import alive
from tallystick.runtimes.transformers.recompute import block_again, scores_again
from tallystick.runtimes.transformers.rules import Step
from tallystick.runtimes.transformers.saved import saved
from tallystick.runtimes.transformers.traits import AttentionTraits, traits_of


class EagerModel(NamedTuple):
    """A model of one type as transformers runs it; the methods are those of `tallystick.runtimes.Running`."""

    traits: AttentionTraits

    def cached(self, attending: Sequence[Attending], sequence: int) -> tuple[Cached, ...]:
        """The KV cache of one sequence after `sequence` tokens: `DynamicCache`."""
        return cached(attending, sequence, self.traits)

    def carried(self, recurring: Sequence[Recurring]) -> tuple[Carried, ...]:
        """What remains of one sequence in layers that read token after token."""
        return carried(recurring)

    def saved(self, parts: Sequence[RunningPart], load: Load, *, learned: bool) -> Iterator[tuple[str, int, int]]:
        """What torch's autograd saves in the forward pass."""
        scores = "again" if load.recompute == "selective" else "kept"
        return saved(parts, self._step(load, scores), whole_blocks=load.recompute == "full", learned=learned)

    def recomputed(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, int]:
        """Bytes of one block, or of its scores, computed again; and of gradients inside, at most."""
        step = self._step(load, "kept")
        size, added = block_again(parts, step) if load.recompute == "full" else scores_again(parts, step)
        return int(size), int(added)

    def alive(self, parts: Sequence[RunningPart], load: Load) -> tuple[int, str]:
        """Bytes of tensors that a variable of a running function holds, without gradients."""
        return alive(parts, self._step(load, "kept"))

    def pairs(self, heads: Heads, window: int | None, sequence: int) -> int:
        """The whole square, masked afterwards, causal or not, windows or not.

        A fused kernel leaves out blocks of it, but its operations are reckoned as if it did not, as
        `torch.utils.flop_counter` does.
        """
        return sequence**2

    def _step(self, load: Load, by_hand: str) -> Step:
        scores = "fused" if load.attention == "flash" else by_hand
        return Step(load.batch, load.sequence, load.width, load.mixed, scores, self.traits)


class Transformers(NamedTuple):
    """The runtime, as `tallystick.runtimes.Runtime` describes one."""

    name: str = "transformers"
    release: str = "5.23"

    def running(self, model_type: str, values: Mapping[str, Any]) -> EagerModel:
        """How transformers runs the models of a type; the book's types run by the book's own code."""
        return EagerModel(traits_of(model_type, values))


TRANSFORMERS = Transformers()
