"""One run of the experiment: an ordinary training run in its own folder, with measures."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from pathlib import Path
from typing import Any

from torch import Tensor

from tallystick.errors import BadInput
from tallystick.sources.run_folder import LOG
from tallystick.training.config import TrainConfig
from tallystick.training.experiment.neighbours import agreement, nearest
from tallystick.training.experiment.results import Interrupted, Moment
from tallystick.training.experiment.uses import uses
from tallystick.training.log import logging, read_log
from tallystick.training.run import Diverged, Run, prepared

KEYS = tuple(Moment.__dataclass_fields__)


class Reporter:
    """Where a run says what it does: each evaluation, and notes for the user."""

    def __init__(self, progress: Callable[[str, int], None] | None, noted: Callable[[str], None] | None) -> None:
        self.progress = progress or (lambda name, step: None)
        self.noted = noted or (lambda note: None)


def final_loss(config: TrainConfig, reporter: Reporter) -> float:
    """Train, or read a finished run; return its last validation loss, infinite if it diverged."""
    try:
        _train(config, reporter, None)
    except Diverged:
        return inf
    return float(_evaluations(config, ("loss",))[-1]["loss"])


def moments(config: TrainConfig, rows: Tensor, reporter: Reporter) -> tuple[Moment, ...]:
    """Train, or read a finished run, and return each of its evaluations with its measures.

    Args:
        config: config of the run.
        rows: tokens whose neighbourhoods are compared, (n,).
        reporter: is called as the run goes on.

    Raises:
        BadInput: if the run diverged, or its log lacks an evaluation.
    """
    try:
        _train(config, reporter, rows)
    except Diverged as error:
        raise BadInput(f"{config.out}: {error}; set a lower learning_rate", code="bad-value") from None
    lines = _evaluations(config, KEYS)
    spaced = [line for line in lines[:-1] if config.steps - line["step"] >= config.eval_every / 2]  # none near the end
    return tuple(Moment(**{key: line[key] for key in KEYS}) for line in [*spaced, lines[-1]])


def matrices(config: TrainConfig, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of embedding and head of a finished run, (n, d) each."""
    run = prepared(config, resume="auto")
    try:
        return run.decoder.embedding.weight.detach()[rows], run.decoder.head.weight.detach()[rows]
    finally:
        run.close()


def _train(config: TrainConfig, reporter: Reporter, rows: Tensor | None) -> None:
    run, out = prepared(config, resume="auto"), Path(config.out)
    try:
        for note in (*(f"{path} is incomplete and was not used" for path in run.torn), *run.notes):
            reporter.noted(note)
        with logging(config, run.progress.step) as write:
            for event in run.events():
                if event.kind == "stopped":
                    raise Interrupted
                if event.kind == "evaluated":
                    more = {} if rows is None else _measured(run, rows)
                    write(event._replace(values={**event.values, **more}))
                    reporter.progress(out.name, event.step)
    finally:
        run.close()


def _measured(run: Run, rows: Tensor) -> dict[str, float]:
    """Return the measures of the two matrices, on the first validation batch."""
    tokens, targets = run.corpus.validation.batch(0, run.config.batch, run.config.sequence, seed=None)
    found = uses(run.decoder, tokens.to(run.ranks.device), targets.to(run.ranks.device))
    bottom, top = (nearest(one.weight[rows]) for one in (run.decoder.embedding, run.decoder.head))
    return {
        "agreement": agreement(bottom, top), "embedding_gradient": found.embedding, "head_gradient": found.head,
        "rows": found.rows, "cosine": found.cosine,
    }  # fmt: skip


def _evaluations(config: TrainConfig, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return all evaluations from a finished run's log, which includes earlier processes'."""
    out = Path(config.out)
    found = {line["step"]: line for line in read_log(out / LOG) if line["kind"] == "evaluated"}
    lines = []
    for step in sorted({*range(config.eval_every, config.steps, config.eval_every), config.steps}):
        line = found.get(step, {})
        if not all(isinstance(line.get(key), int | float) and isfinite(line[key]) for key in keys):
            raise BadInput(
                f"{out / LOG} lacks the evaluation of step {step:,}: remove {out} to run it again",
                code="malformed",
            )
        lines.append(line)
    return lines
