"""The plan of a run, made before its first step: parameters, data, predicted memory."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch

from tallystick.answers.compute.compute import compute
from tallystick.answers.memory.answer import Memory
from tallystick.answers.memory.memory import memory
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.sources import read
from tallystick.training.config import TrainConfig
from tallystick.training.run import SHORTEST, Run


@dataclass(frozen=True)
class Plan:
    """Figures of a run before its first step."""

    parameters: int  # unique
    ties: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]
    train_tokens: int
    validation_tokens: int
    vocabulary: int  # entries of the tokenizer
    ranks: int
    step: int  # step at which it starts
    steps: int
    torn: tuple[str, ...]  # incomplete checkpoints
    notes: tuple[str, ...]  # e.g. a damaged log, a folder that cannot be locked
    flops_per_token: int | None  # forward and backward pass
    peak_flops: float | None  # per second, measured with a large matrix product
    predicted: Memory | None
    why_not: str  # why no memory is predicted; "" if it is

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {**vars(self), "predicted_bytes": self.predicted.total_bytes if self.predicted else None}
        del values["predicted"]
        return values


def plan_of(run: Run) -> Plan:
    """Return the plan of a prepared run."""
    config = run.config
    ledger = read(run.decoder.config.origin, {})
    predicted, why_not, flops = None, "", None
    try:
        flops = compute(ledger, batch=1, sequence=config.sequence).training_flops // config.sequence
        predicted = predicted_memory(config, ledger, ranks=run.ranks.count)
    except BadInput as error:
        why_not = str(error)
    return Plan(
        ledger.total,
        tuple(tie.names for tie in run.decoder.ledger().ties),
        tuple(run.groups.summary()),
        run.corpus.train.count,
        run.corpus.validation.count,
        run.corpus.tokenizer.size,
        run.ranks.count,
        run.progress.step,
        config.steps,
        tuple(map(str, run.torn)),
        tuple(run.notes),
        flops,
        peak_flops(run.ranks.device, torch.bfloat16 if config.precision == "bfloat16" else torch.float32),
        predicted,
        why_not,
    )


def predicted_memory(config: TrainConfig, ledger: Ledger, *, ranks: int = 1) -> Memory:
    """Predict the training memory of one rank.

    Args:
        config: config of the run.
        ledger: ledger of the model.
        ranks: number of ranks.

    Raises:
        BadInput: if the memory of this model cannot be predicted.
    """
    return memory(
        ledger,
        mode="training",
        dtype="float32",
        batch=config.batch // config.accumulate // ranks,
        sequence=config.sequence,
        optimizer="muon" if config.optimizer == "muon" else "adamw-fused",
        precision="mixed" if config.precision == "bfloat16" else "pure",
        recompute="full" if config.recompute else "none",
        loss="chunked",
        dp=ranks,
        zero=3 if config.sharding == "fsdp" and ranks > 1 else 0,
    )


def peak_flops(device: torch.device, dtype: torch.dtype, size: int | None = None) -> float:
    """Measure the FLOPs per second of a product of two square matrices, the best of a few.

    Args:
        device: where to compute.
        dtype: dtype of the matrices.
        size: their number of rows; by default 2,048 on a GPU, and 1,024 on a CPU, which is as fast
            with them.
    """
    size = size or (1024 if device.type == "cpu" else 2048)
    one = torch.randn(size, size, device=device).to(dtype)
    best = math.inf
    for _ in range(4):
        start = time.perf_counter()
        one @ one
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / max(best, SHORTEST)
