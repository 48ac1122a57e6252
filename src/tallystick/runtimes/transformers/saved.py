"""Activations that a training step saves for its backward pass, in all layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.core.anatomy import AttentionRun, ChunkedScan, RunningPart
from tallystick.runtimes.transformers.rules import (
    INDEX,
    MASK,
    Step,
    chunked,
    extras,
    masked_layers,
    of_part,
    rotary_tables,
    windows_of,
)


def saved(
    parts: Sequence[RunningPart], step: Step, *, whole_blocks: bool, learned: bool
) -> Iterator[tuple[str, int, int]]:
    """Yield the saved tensors: kind, number of layers, bytes in each.

    Args:
        parts: the parts that run; not empty.
        step: how the step runs.
        whole_blocks: activation checkpointing of whole blocks, each recomputed from its input.
        learned: the model has learned position embeddings.
    """
    # Position ids are also needed to recompute blocks, for rotary embedding.
    positions = step.sequence if learned or whole_blocks else 0
    yield "token ids and positions", 1, (step.tokens + positions) * INDEX
    for part in parts:
        if not whole_blocks or part.start is None:
            yield from _of_part(part, step)
    if whole_blocks:
        yield from _inputs(parts, step)
    yield "rotary positions", 1, max(rotary_tables(part, step, each=not whole_blocks) for part in parts)


def _of_part(part: RunningPart, step: Step) -> Iterator[tuple[str, int, int]]:
    for what, size in of_part(part, step).items():
        yield what, part.layers, size
    yield from extras(part, step)


def _inputs(parts: Sequence[RunningPart], step: Step) -> Iterator[tuple[str, int, int]]:
    """Yield what checkpointed blocks keep: their inputs, and the masks that they share."""
    for part in parts:
        if isinstance(part.what, AttentionRun | ChunkedScan) and part.start is not None:
            yield "block inputs", part.layers, step.tokens * part.what.reads * step.stream
    windows = {window for part in parts for window in windows_of(part)}
    if step.scores != "fused":
        yield "masks", 1, len(windows) * step.batch * step.sequence**2 * step.stream
    elif any(masked_layers(part, step) for part in parts):
        yield "masks", 1, (step.batch if chunked(parts) else 1) * step.sequence**2 * MASK
