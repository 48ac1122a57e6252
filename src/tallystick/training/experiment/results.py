"""The results of a tying experiment, as plain data, and the interval of a mean over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Any

from tallystick.training.config import TrainConfig

# Student's t, quantile 0.975, by degrees of freedom from 1 (NIST/SEMATECH e-Handbook, section
# 1.3.6.7.2).
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
NORMAL_975 = 1.960


class Interrupted(Exception):
    """A signal asked to stop; the run in progress is saved."""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, and half the width of its 95% interval: infinite for one seed.

    >>> Mean.of([1.0, 2.0, 3.0])
    Mean(value=2.0, half=2.484...)
    """

    value: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Return the mean of independent values, with Student's t interval.

        Args:
            values: one value per seed.
        """
        count = len(values)
        if count < 2:
            return cls(fmean(values), inf)
        quantile = T_975[count - 2] if count - 2 < len(T_975) else NORMAL_975
        return cls(fmean(values), quantile * stdev(values) / sqrt(count))

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return abs(self.value) > self.half


@dataclass(frozen=True)
class Trial:
    """One run of the search: its learning rate, initial deviation and final validation loss."""

    learning_rate: float
    init_std: float
    loss: float  # infinite if the run diverged


@dataclass(frozen=True)
class Moment:
    """One evaluation of one run."""

    step: int
    loss: float  # validation, nats per token
    bits_per_byte: float
    agreement: float  # share of the k nearest rows that embedding and head have in common; 1 if tied
    embedding_gradient: float  # norm of the gradient through the lookup
    head_gradient: float  # norm of the gradient through the logits
    rows: float  # share of the embedding's rows that one batch's lookup gives a gradient
    cosine: float  # of the two gradients


@dataclass(frozen=True)
class Variant:
    """One variant at one vocabulary: its sizes, its best settings, and one run per seed."""

    name: str
    width: int
    inner: int  # width of the MLP
    parameters: int
    flops: int  # of training, per token
    steps: int
    learning_rate: float
    init_std: float
    trials: tuple[Trial, ...]
    runs: tuple[tuple[Moment, ...], ...]  # a seed each

    @property
    def ends(self) -> tuple[float, ...]:
        """Final validation loss of each seed."""
        return tuple(run[-1].loss for run in self.runs)

    @property
    def bits_per_byte(self) -> Mean:
        """Final bits per byte."""
        return Mean.of([run[-1].bits_per_byte for run in self.runs])

    def mean(self, key: str, place: int = -1) -> Mean:
        """Return the mean over seeds of a value of one evaluation.

        Args:
            key: a field of `Moment`.
            place: index of the evaluation.
        """
        return Mean.of([getattr(run[place], key) for run in self.runs])

    def beyond(self, other: Variant) -> Mean:
        """Return the difference in final loss to another variant, seed by seed.

        Args:
            other: a variant at the same vocabulary, with the same seeds.
        """
        return Mean.of([mine - theirs for mine, theirs in zip(self.ends, other.ends, strict=True)])


@dataclass(frozen=True)
class Comparison:
    """All variants at one vocabulary, the tied one first, and what their neighbourhoods share."""

    tokenizer: str
    vocabulary: int
    share: float  # of the tied model's parameters in the embedding
    variants: tuple[Variant, ...]
    compared: int  # tokens whose neighbourhoods are compared: read often enough
    chance: float  # agreement of two random neighbourhoods
    agreements: dict[str, tuple[float, ...]]  # pair of matrices -> agreement of each seed
    pairs: int  # ordered pairs of tokens that differ in case or space alone
    near: dict[str, tuple[float, ...]]  # matrix -> share of those pairs within the k nearest, of each seed


@dataclass(frozen=True)
class Experiment:
    """The whole experiment, a comparison for each vocabulary."""

    comparisons: tuple[Comparison, ...]
    config: TrainConfig
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
