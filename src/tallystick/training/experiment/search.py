"""Find the learning rate and the initial deviation at which a variant ends best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from tallystick.errors import BadInput
from tallystick.training.experiment.results import Trial

RATE, STD = 2.0, 2.5  # factors between neighbours
MOST = 4  # steps from the start in one direction


@dataclass(frozen=True)
class Setting:
    """A place on the grid: factors of `RATE` and `STD` from the base run's values."""

    rate: int = 0
    std: int = 0

    def moved(self, axis: str, by: int) -> Setting:
        """Return the neighbour along an axis, ``"rate"`` or ``"std"``."""
        return Setting(self.rate + by, self.std) if axis == "rate" else Setting(self.rate, self.std + by)


def search(trial: Callable[[Setting], Trial], start: Setting) -> tuple[Setting, tuple[Trial, ...]]:
    """Move along the grid until every neighbour ends worse.

    The learning rate is moved first, then the deviation, and again while one of them moved. The
    base setting is tried too, so that all variants can be compared at one setting.

    Args:
        trial: trains with a setting.
        start: where the search starts.

    Returns:
        The best setting, and every trial in the order of its run, the base setting first.

    Raises:
        BadInput: if the run diverges wherever the search went.
    """
    seen: dict[Setting, Trial] = {}

    def loss(setting: Setting) -> float:
        if setting not in seen:
            seen[setting] = trial(setting)
        return seen[setting].loss

    best, before = min(Setting(), start, key=loss), None
    while best != before:
        before = best
        for axis in ("rate", "std"):
            for by in (1, -1):
                while abs(getattr(best, axis) + by) <= MOST and loss(best.moved(axis, by)) < loss(best):
                    best = best.moved(axis, by)
    if not isfinite(loss(best)):
        raise BadInput("every run of the search diverged: set a lower learning_rate", code="bad-value")
    return best, tuple(seen.values())
