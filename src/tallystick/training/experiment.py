"""The tying experiment: train tied, untied, and untied with the tied one's parameter count.

All variants see the same text in the same order for the same steps, from several seeds. The
results are validation loss, cosine similarity of embedding and head, and memory. Each run is an
ordinary run in its own folder: an interrupted one is resumed, a finished one is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from torch import nn

from tallystick.errors import BadInput
from tallystick.models.decoder import Decoder
from tallystick.sources import read
from tallystick.sources.run_folder import LOG
from tallystick.training.config import TrainConfig
from tallystick.training.data import corpus_of
from tallystick.training.lock import locked
from tallystick.training.log import logging, read_log
from tallystick.training.plan import predicted_memory
from tallystick.training.run import prepared

EVALUATIONS = 10  # per run
SIZES = ("hidden_size", "intermediate_size", "num_attention_heads")  # keys that the narrower variant is scaled by


@dataclass(frozen=True)
class Point:
    """One evaluation of a variant's runs: means over seeds, and their spread."""

    step: int
    tokens: int
    loss: float  # validation, nats per token
    spread: float  # standard deviation over seeds; 0 for one seed
    cosine: float  # mean cosine of each token's rows in embedding and head: 1 if tied


@dataclass(frozen=True)
class Variant:
    """One variant and its results."""

    name: str
    width: int
    parameters: int
    training_bytes: int  # predicted: weights, gradients, optimizer state, activations
    points: tuple[Point, ...]
    ends: tuple[float, ...]  # final loss of each seed

    @property
    def loss(self) -> float:
        """Final validation loss."""
        return self.points[-1].loss


@dataclass(frozen=True)
class Experiment:
    """All variants, the tied one first."""

    variants: tuple[Variant, ...]
    config: TrainConfig

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class Interrupted(Exception):
    """A signal asked to stop; the run in progress is saved."""


def tying(
    config: TrainConfig,
    *,
    seeds: int = 3,
    progress: Callable[[str, int], None] | None = None,
    noted: Callable[[str], None] | None = None,
) -> Experiment:
    """Train all variants, or resume those that were interrupted.

    Args:
        config: config of the tied run; `out` gets a folder per run, and one for the tokens.
        seeds: runs per variant, from the config's seed upward.
        progress: called with a run's name and step after each evaluation.
        noted: called with notes for the user: an unused checkpoint, a damaged log.

    Raises:
        Interrupted: after SIGTERM or Ctrl-C.
        BadInput: if a variant cannot be trained, `out` has runs of another config, or
            another process trains in it.
    """
    with locked(Path(config.out)):
        return _tying(config, seeds, progress or (lambda name, step: None), noted or (lambda note: None))


def _tying(
    config: TrainConfig, seeds: int, progress: Callable[[str, int], None], noted: Callable[[str], None]
) -> Experiment:
    missing = next((key for key in SIZES if key not in config.model), None)
    if missing:
        raise BadInput(
            f"the narrower model scales {', '.join(SIZES)}, but model.{missing} is not set",
            code="bad-value",
        )
    out = Path(config.out)
    every = max(1, config.steps // EVALUATIONS)
    base = replace(config, tokens=config.tokens or str(out / "tokens"), eval_every=every, save_every=0, keep=1)
    rows = _vocabulary(base)
    tied = _sized(base, rows, tie_word_embeddings=True)
    untied = _sized(base, rows, tie_word_embeddings=False)
    narrow = _as_large_as(tied, untied)
    kinds = {"tied": tied, "untied": untied, "untied, narrower": narrow}
    ledgers = {name: read(_values(one), {}) for name, one in kinds.items()}
    memories = {
        name: predicted_memory(one, ledgers[name]).total_bytes for name, one in kinds.items()
    }  # fail before the first step
    variants = []
    for name, one in kinds.items():
        runs = []
        for seed in range(config.seed, config.seed + seeds):
            folder = out / f"{name.replace(', ', '-')}-{seed}"
            runs.append(_run(replace(one, seed=seed, out=str(folder)), progress, noted))
        points = tuple(_point(one, moments) for moments in zip(*runs, strict=True))
        ends = tuple(moments[-1]["loss"] for moments in runs)
        width = int(one.model["hidden_size"])
        variants.append(Variant(name, width, ledgers[name].total, memories[name], points, ends))
    return Experiment(tuple(variants), config)


def _run(
    config: TrainConfig, progress: Callable[[str, int], None], noted: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return step, validation loss and cosine of each evaluation."""
    run, out = prepared(config, resume="auto"), Path(config.out)
    try:
        for note in (*(f"{path} is incomplete and was not used" for path in run.torn), *run.notes):
            noted(note)
        with logging(config, run.progress.step) as write:
            for event in run.events():
                if event.kind == "stopped":
                    raise Interrupted
                if event.kind == "evaluated":
                    write(event._replace(values={**event.values, "cosine": _cosine(run.decoder)}))
                    progress(out.name, event.step)
    finally:
        run.close()
    return _evaluations(config)


def _evaluations(config: TrainConfig) -> list[dict[str, Any]]:
    """Return all evaluations from a finished run's log, which includes earlier processes'."""
    out = Path(config.out)
    found = {line["step"]: line for line in read_log(out / LOG) if line["kind"] == "evaluated"}
    moments = []
    for step in sorted({*range(config.eval_every, config.steps, config.eval_every), config.steps}):
        line = found.get(step, {})
        if not all(isinstance(line.get(key), float) and isfinite(line[key]) for key in ("loss", "cosine")):
            raise BadInput(
                f"{out / LOG} lacks the evaluation of step {step:,}: remove {out} to run it again",
                code="malformed",
            )
        moments.append(line)
    return moments


def _cosine(decoder: Decoder) -> float:
    """Return the mean cosine of the rows of embedding and head."""
    rows = decoder.embedding.weight.detach(), decoder.head.weight.detach()
    return float(nn.functional.cosine_similarity(*rows).mean())


def _point(config: TrainConfig, moments: Sequence[Mapping[str, Any]]) -> Point:
    losses, step = [moment["loss"] for moment in moments], moments[0]["step"]
    return Point(
        step,
        step * config.batch * config.sequence,
        fmean(losses),
        stdev(losses) if len(losses) > 1 else 0.0,
        fmean(moment["cosine"] for moment in moments),
    )


def _vocabulary(config: TrainConfig) -> int:
    """Return the size of the tokenizer's vocabulary; makes the tokens if needed."""
    corpus = corpus_of(
        config.data,
        tokenizer=config.tokenizer,
        validation=config.validation,
        folder=Path(config.tokens),
        sequence=config.sequence,
    )
    return corpus.tokenizer.size


def _sized(config: TrainConfig, rows: int, **model: Any) -> TrainConfig:
    return replace(config, model={**config.model, "vocab_size": rows, **model})


def _values(config: TrainConfig) -> Mapping[str, Any]:
    return {"model_type": config.source, **config.model}


def _as_large_as(wanted: TrainConfig, other: TrainConfig) -> TrainConfig:
    """Return `other` with nearly the parameters of `wanted`: scale the width, then the MLP."""
    widest, inner, heads = (int(other.model[key]) for key in SIZES)
    total = read(_values(wanted), {}).total

    def gap(one: TrainConfig) -> int:
        return abs(read(_values(one), {}).total - total)

    def sized(width: int, inner: int) -> TrainConfig:
        return replace(other, model={**other.model, "hidden_size": width, "intermediate_size": inner})

    widths = range(2 * heads, widest + 1, 2 * heads)
    nearest = min((sized(width, round(inner * width / widest)) for width in widths), key=gap)
    width = int(nearest.model["hidden_size"])
    return min((sized(width, size) for size in range(1, 2 * inner)), key=gap)
