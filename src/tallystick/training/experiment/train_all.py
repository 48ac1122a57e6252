"""Train every variant at several vocabularies, each at its best settings, and compare them.

All variants see the same text in the same order, from several seeds. The search for the best
settings has a seed of its own. Each run is an ordinary run in its own folder: an interrupted one
is resumed, a finished one is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.sources import read
from tallystick.training.config import TrainConfig
from tallystick.training.corpus.corpus import Corpus, corpus_of
from tallystick.training.experiment.neighbours import NEAREST, agreement, alike, near, nearest
from tallystick.training.experiment.results import Comparison, Experiment, Trial, Variant
from tallystick.training.experiment.runs import Reporter, final_loss, matrices, moments
from tallystick.training.experiment.search import RATE, STD, Setting, search
from tallystick.training.experiment.variants import (
    LONGER,
    SMALLER,
    TIED,
    UNTIED,
    flops_of,
    share_of,
    size_of,
    variants_of,
)
from tallystick.training.lock import locked
from tallystick.training.plan import predicted_memory

EVALUATIONS = 6  # per run
STD_KEY, STD_DEFAULT = "initializer_range", 0.02
READ = 20  # times that a token was read, at least, for its neighbourhoods to be compared
START = Setting(1, 1)  # small models do better above the usual rate and deviation
SEARCHED = {TIED: None, UNTIED: TIED, SMALLER: UNTIED}  # variant -> variant at whose best settings its search starts


def tying(
    config: TrainConfig,
    *,
    tokenizers: Sequence[str],
    seeds: int = 4,
    progress: Callable[[str, int], None] | None = None,
    noted: Callable[[str], None] | None = None,
) -> Experiment:
    """Train all variants at each vocabulary, or resume those that were interrupted.

    All runs on one thread: the numbers would depend on how many, and such small matrices gain
    nothing from more.

    Args:
        config: config of the tied run; `out` gets a folder per vocabulary, and in it one per run.
        tokenizers: a vocabulary each, as `TrainConfig.tokenizer` names them, the smallest first.
        seeds: runs per variant, from the config's seed upward.
        progress: called with a run's name and step after each evaluation.
        noted: called with notes for the user: an unused checkpoint, a damaged log.

    Returns:
        A comparison for each vocabulary.

    Raises:
        Interrupted: after SIGTERM or Ctrl-C.
        BadInput: if a variant cannot be trained, `out` has runs of another config, or
            another process trains in it.
    """
    reporter = Reporter(progress, noted)
    with locked(Path(config.out)), _one_thread():
        out, start, comparisons = Path(config.out), START, []
        for tokenizer in tokenizers:
            folder = out / tokenizer.replace(":", "-").replace("/", "-").strip("-")
            every = max(1, config.steps // EVALUATIONS)
            base = replace(
                config, tokenizer=tokenizer, tokens=str(folder / "tokens"), out=str(folder), eval_every=every,
                save_every=0, keep=1,
            )  # fmt: skip
            comparison, start = _compared(base, seeds, start, reporter)
            comparisons.append(comparison)
        return Experiment(tuple(comparisons), config, seeds)


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _compared(base: TrainConfig, seeds: int, start: Setting, reporter: Reporter) -> tuple[Comparison, Setting]:
    """Compare the variants at one vocabulary; return the tied one's best setting too."""
    corpus = _corpus(base)
    kinds = variants_of(base, corpus.tokenizer.size)
    for one in kinds.values():
        predicted_memory(one, read({"model_type": one.source, **one.model}, {}))  # fail before the first step
    rows = _often_read(corpus, base)
    best: dict[str, Setting] = {}
    trials: dict[str, tuple[Trial, ...]] = {LONGER: ()}
    for name, before in SEARCHED.items():
        best[name], trials[name] = search(_trial(kinds[name], name, seeds, reporter), best[before] if before else start)
    best[LONGER] = best[SMALLER]
    runs = {name: [_placed(kinds[name], best[name], name, base.seed + one) for one in range(seeds)] for name in kinds}
    variants = tuple(
        _variant(name, runs[name], trials[name], [moments(run, rows, reporter) for run in runs[name]]) for name in kinds
    )
    ends = {name: [matrices(run, rows) for run in runs[name]] for name in (TIED, UNTIED)}
    spread = {kind: [nearest(one) for one in found] for kind, found in _by_matrix(ends).items()}
    pairs = alike(corpus.tokenizer, rows.tolist())
    comparison = Comparison(
        base.tokenizer,
        corpus.tokenizer.size,
        share_of(kinds[TIED]),
        variants,
        len(rows),
        min(NEAREST, len(rows) - 1) / (len(rows) - 1),
        _agreements(spread),
        len(pairs),
        {kind: tuple(near(one, pairs) for one in found) for kind, found in spread.items()} if pairs else {},
    )
    return comparison, best[TIED]


def _trial(config: TrainConfig, name: str, seeds: int, reporter: Reporter) -> Callable[[Setting], Trial]:
    """Return the function that trains with a setting, from a seed that no reported run has."""

    def trial(setting: Setting) -> Trial:
        placed = _placed(config, setting, name, config.seed + seeds)
        folder = Path(config.out) / "search" / f"{Path(placed.out).name}-{setting.rate:+d}{setting.std:+d}"
        run = replace(placed, out=str(folder), eval_every=config.steps)
        return Trial(run.learning_rate, run.model[STD_KEY], final_loss(run, reporter))

    return trial


def _placed(config: TrainConfig, setting: Setting, name: str, seed: int) -> TrainConfig:
    std = config.model.get(STD_KEY, STD_DEFAULT) * STD**setting.std
    return replace(
        config,
        seed=seed,
        learning_rate=config.learning_rate * RATE**setting.rate,
        model={**config.model, STD_KEY: round(std, 6)},
        out=str(Path(config.out) / f"{name.replace(', ', '-')}-{seed}"),
    )


def _variant(name: str, runs: Sequence[TrainConfig], trials: tuple[Trial, ...], found: Sequence[Any]) -> Variant:
    first = runs[0]
    return Variant(
        name,
        int(first.model["hidden_size"]),
        int(first.model["intermediate_size"]),
        size_of(first),
        flops_of(first),
        first.steps,
        first.learning_rate,
        first.model[STD_KEY],
        trials,
        tuple(found),
    )


def _by_matrix(ends: Mapping[str, list[tuple[Tensor, Tensor]]]) -> dict[str, list[Tensor]]:
    return {
        "tied matrix": [bottom for bottom, _ in ends[TIED]],
        "untied embedding": [bottom for bottom, _ in ends[UNTIED]],
        "untied head": [top for _, top in ends[UNTIED]],
    }


def _agreements(spread: Mapping[str, list[Tensor]]) -> dict[str, tuple[float, ...]]:
    """Return how far the neighbourhoods of each pair of matrices agree, seed by seed.

    A matrix and itself from the next seed say how far the same matrix agrees when learned twice.
    """
    kinds = list(spread)
    found = {}
    for place, one in enumerate(kinds):
        for other in kinds[place + 1 :]:
            pairs = zip(spread[one], spread[other], strict=True)
            found[f"{one}, {other}"] = tuple(agreement(*pair) for pair in pairs)
    for kind, seeds in spread.items():
        if len(seeds) > 1:
            again = zip(seeds, [*seeds[1:], seeds[0]], strict=True)
            found[f"{kind}, from two seeds"] = tuple(agreement(*pair) for pair in again)
    return found


def _often_read(corpus: Corpus, config: TrainConfig) -> Tensor:
    """Return the tokens that the first seed's run reads at least `READ` times, in ascending order.

    Raises:
        BadInput: if there are fewer than three.
    """
    counts = torch.zeros(corpus.tokenizer.size, dtype=torch.int64)
    for step in range(config.steps):
        tokens, _ = corpus.train.batch(step, config.batch, config.sequence, seed=config.seed)
        counts += tokens.flatten().bincount(minlength=len(counts))
    rows = (counts >= READ).nonzero().flatten()
    if len(rows) < 3:
        raise BadInput(
            f"only {len(rows)} tokens are read {READ} times in {config.steps:,} steps: raise --steps", code="bad-value"
        )
    return rows


def _corpus(config: TrainConfig) -> Corpus:
    """Return the tokens; makes them if needed."""
    return corpus_of(
        config.data,
        tokenizer=config.tokenizer,
        validation=config.validation,
        folder=Path(config.tokens),
        sequence=config.sequence,
    )
