"""What tying does: one decoder tied, untied, and untied with its width cut to as many parameters as the tied one has.

All see the same text in the same order for as many steps. Each is trained from several seeds, and the validation loss, the
likeness of embedding and head, and the memory are set side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from torch import nn

from tallystick import count, memory
from tallystick.models.decoder import Decoder
from tallystick.training.config import TrainConfig
from tallystick.training.run import prepared

EVALUATIONS = 10  # in one run


@dataclass(frozen=True)
class Point:
    """A moment of all runs of a variant: means over their seeds, and how far they are spread."""

    step: int
    tokens: int
    loss: float  # validation, nats per token
    spread: float  # the standard deviation between seeds; 0 of one
    cosine: float  # of each token's rows in embedding and head, on average: 1 where they are one


@dataclass(frozen=True)
class Variant:
    """One way to have a head."""

    name: str
    width: int
    parameters: int
    training_bytes: int  # predicted: weights, gradients, optimizer state, activations
    points: tuple[Point, ...]

    @property
    def loss(self) -> float:
        """At the end."""
        return self.points[-1].loss


@dataclass(frozen=True)
class Experiment:
    """All variants, side by side."""

    variants: tuple[Variant, ...]
    seeds: int
    steps: int
    config: TrainConfig

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def tying(config: TrainConfig, *, seeds: int = 3, told: Callable[[str, int], None] | None = None) -> Experiment:
    """Train all variants.

    Args:
        config: of a run of the tied decoder; `out` gets a folder for each run, and one with the tokens for all.
        seeds: runs of each variant, from the config's own seed on.
        told: called with a run's name and its step after each evaluation.
    """
    out = Path(config.out)
    every = max(1, config.steps // EVALUATIONS)
    base = replace(config, tokens=str(out / "tokens"), eval_every=every, save_every=0, log_every=config.steps, keep=1)
    rows = _vocabulary(base)
    tied = _sized(base, rows, tie_word_embeddings=True)
    untied = _sized(base, rows, tie_word_embeddings=False)
    narrow = _as_large_as(tied, untied)
    variants = []
    for name, one in (("tied", tied), ("untied", untied), ("untied, narrower", narrow)):
        runs = []
        for seed in range(config.seed, config.seed + seeds):
            folder = out / f"{name.replace(', ', '-')}-{seed}"
            runs.append(_run(replace(one, seed=seed, out=str(folder)), told))
        ledger = count(_values(one))
        variants.append(
            Variant(
                name,
                int(_values(one)["hidden_size"]),
                ledger.total,
                memory(ledger, mode="training", batch=one.batch, sequence=one.sequence, loss="chunked").total,
                tuple(_point(one, moments) for moments in zip(*runs, strict=True)),
            )
        )
    return Experiment(tuple(variants), seeds, config.steps, config)


def _run(config: TrainConfig, told: Callable[[str, int], None] | None) -> list[tuple[int, float, float]]:
    """Step, validation loss and likeness at each evaluation."""
    run, found = prepared(config), []
    for event in run.events():
        if event.kind == "evaluated":
            found.append((event.step, event.values["loss"], _cosine(run.decoder)))
            if told is not None:
                told(Path(config.out).name, event.step)
    return found


def _cosine(decoder: Decoder) -> float:
    """Of each row of the embedding with that of the head, on average."""
    rows = decoder.embedding.weight.detach(), decoder.head.weight.detach()
    return float(nn.functional.cosine_similarity(*rows).mean())


def _point(config: TrainConfig, moments: tuple[tuple[int, float, float], ...]) -> Point:
    losses = [loss for _, loss, _ in moments]
    step = moments[0][0]
    return Point(
        step,
        step * config.batch * config.sequence,
        fmean(losses),
        stdev(losses) if len(losses) > 1 else 0.0,
        fmean(cosine for *_, cosine in moments),
    )


def _vocabulary(config: TrainConfig) -> int:
    """Entries of the tokenizer; the tokens are made on the way."""
    return prepared(replace(config, out=str(Path(config.out) / "tokens-only"))).corpus.tokenizer.size


def _sized(config: TrainConfig, rows: int, **model: Any) -> TrainConfig:
    return replace(config, model={**config.model, "vocab_size": rows, **model})


def _values(config: TrainConfig) -> Mapping[str, Any]:
    return {"model_type": config.source, **config.model}


def _as_large_as(wanted: TrainConfig, other: TrainConfig) -> TrainConfig:
    """`other` made as large as `wanted`: the width that comes nearest, with heads of an even size, then the MLP's."""
    total, step = count(_values(wanted)).total, 2 * int(other.model["num_attention_heads"])
    widest, inner = int(other.model["hidden_size"]), int(other.model["intermediate_size"])

    def gap(one: TrainConfig) -> int:
        return abs(count(_values(one)).total - total)

    def sized(width: int, inner: int) -> TrainConfig:
        return replace(other, model={**other.model, "hidden_size": width, "intermediate_size": inner})

    nearest = min((sized(width, round(inner * width / widest)) for width in range(step, widest + 1, step)), key=gap)
    width = int(nearest.model["hidden_size"])
    return min((sized(width, size) for size in range(1, 2 * inner)), key=gap)
