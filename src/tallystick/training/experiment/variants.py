"""The variants of the experiment, and how large each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tallystick.answers.compute.compute import compute
from tallystick.errors import BadInput
from tallystick.sources import read
from tallystick.training.config import TrainConfig

TIED, UNTIED, SMALLER, LONGER = "tied", "untied", "untied, smaller", "untied, smaller, longer"
SIZES = ("hidden_size", "intermediate_size", "num_attention_heads")  # keys that the smaller variant is scaled by


def variants_of(base: TrainConfig, rows: int) -> dict[str, TrainConfig]:
    """Return the runs that are compared.

    - untied: the same sizes, hence equal steps and equal FLOPs, and one matrix more;
    - untied, smaller: the tied one's parameters, in equal steps;
    - untied, smaller, longer: the tied one's parameters and FLOPs, hence more steps.

    Args:
        base: config of a run.
        rows: entries of its tokenizer.

    Raises:
        BadInput: if a size is missing, or a model cannot be built.
    """
    missing = next((key for key in SIZES if key not in base.model), None)
    if missing:
        raise BadInput(
            f"the smaller model scales {', '.join(SIZES)}, but model.{missing} is not set",
            code="bad-value",
        )
    tied = _with(base, vocab_size=rows, tie_word_embeddings=True)
    untied = _with(base, vocab_size=rows, tie_word_embeddings=False)
    smaller = _as_large_as(tied, untied)
    steps = round(base.steps * flops_of(tied) / flops_of(smaller))
    return {TIED: tied, UNTIED: untied, SMALLER: smaller, LONGER: replace(smaller, steps=steps)}


def size_of(config: TrainConfig) -> int:
    """Return the unique parameters of a run's model."""
    return read(_values(config), {}).total


def share_of(config: TrainConfig) -> float:
    """Return the share of a tied model's parameters in its token embedding."""
    return int(config.model["vocab_size"]) * int(config.model["hidden_size"]) / size_of(config)


def flops_of(config: TrainConfig) -> int:
    """Return the FLOPs of training on one token."""
    return compute(read(_values(config), {}), batch=1, sequence=config.sequence).training_flops // config.sequence


def _with(config: TrainConfig, **model: Any) -> TrainConfig:
    return replace(config, model={**config.model, **model})


def _values(config: TrainConfig) -> Mapping[str, Any]:
    return {"model_type": config.source, **config.model}


def _as_large_as(wanted: TrainConfig, other: TrainConfig) -> TrainConfig:
    """Return `other` with nearly the parameters of `wanted`: scale the width, then the MLP."""
    widest, inner, heads = (int(other.model[key]) for key in SIZES)
    total = size_of(wanted)

    def gap(one: TrainConfig) -> int:
        return abs(size_of(one) - total)

    def sized(width: int, inner: int) -> TrainConfig:
        return _with(other, hidden_size=width, intermediate_size=inner)

    widths = range(2 * heads, widest + 1, 2 * heads)
    nearest = min((sized(width, round(inner * width / widest)) for width in widths), key=gap)
    width = int(nearest.model["hidden_size"])
    return min((sized(width, size) for size in range(1, 2 * inner)), key=gap)
