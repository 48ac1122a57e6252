"""Peak memory of activations in prefill, without weights and KV cache.

The rules count the tensors alive while transformers 5 runs a model without gradients: a tensor
lives as long as a local variable of a running function holds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.anatomy import AttentionRun, ChunkedScan, FeedForward, Norm, Routing, RunningPart
from tallystick.runtimes.transformers.rules import (
    FLOAT,
    INDEX,
    MASK,
    Step,
    chunked,
    masked_layers,
    rotary_tables,
    scores_by_hand,
    widths_of_scores,
    windows_of,
)

STREAM = 2  # tensors of the residual's width alive in a block: the embeddings, and the block's input

# Tensors of the inner width alive at once in handwritten activations; others hold input and result.
WIDEST = {"relu2": 3, "gelu_new": 4, "bloom_gelu": 5, "clamped_swiglu": 9}


def alive(parts: Sequence[RunningPart], step: Step) -> tuple[int, str]:
    """Return the peak memory of one layer in prefill.

    Args:
        parts: the parts that run.
        step: how the step runs.

    Returns:
        Bytes alive at once, and the name of the part that holds most of them.
    """
    layers = [part for part in parts if isinstance(part.what, AttentionRun | ChunkedScan | FeedForward | Routing)]
    beside = _for_all_layers(parts, step)
    return max((int(beside + _alive(part, parts, step)), part.name) for part in layers)


def _for_all_layers(parts: Sequence[RunningPart], step: Step) -> int:
    """Return the bytes of positions, rotary tables, and one mask for each window size."""
    windows = {window for part in parts for window in windows_of(part)}
    masks = 0
    if any(isinstance(part.what, AttentionRun) and _eager(part.what, step) for part in parts):
        masks = len(windows) * step.batch * step.sequence**2 * step.width
    elif any(masked_layers(part, step) for part in parts):
        masks = (step.batch if chunked(parts) else len(windows)) * step.sequence**2 * MASK
    vectors = max(
        (part.what.reads for part in parts if isinstance(part.what, AttentionRun) and step.traits.output_alive),
        default=0,
    )
    positions = step.sequence * (INDEX + vectors * step.width)
    return positions + max(rotary_tables(part, step) for part in parts) + masks


def _alive(part: RunningPart, parts: Sequence[RunningPart], step: Step) -> int:
    """Return the bytes alive in one layer while a part of it runs."""
    what, streams = part.what, STREAM + any(_normed(other) for other in parts)
    if isinstance(what, AttentionRun | ChunkedScan):
        mixer = _attention(what, step) if isinstance(what, AttentionRun) else _scan(what, step)
        return step.tokens * what.reads * streams * step.width + mixer + _handed_on(part, parts, step)
    readings = [other.what for other in parts if isinstance(other.what, AttentionRun)]
    left = max((_probabilities(one, step) for one in readings), default=0) + _handed_on(part, parts, step)
    streams += 1 + max(
        (step.traits.output_alive + step.traits.residuals_alive for one in readings), default=0
    )  # the attention's sum
    if isinstance(what, Routing):
        return left + step.tokens * what.feed.reads * streams * step.width + _experts(what, step)
    return (
        left + step.tokens * what.reads * streams * step.width + _inner(what, step)
        if isinstance(what, FeedForward)
        else 0
    )


def _handed_on(part: RunningPart, parts: Sequence[RunningPart], step: Step) -> int:
    """Return the bytes of the previous layer's attention probabilities, if they still live.

    In a hybrid model they live during a scan, since scans follow attention.
    """
    if any(isinstance(other.what, ChunkedScan) for other in parts) and not isinstance(part.what, ChunkedScan):
        return 0
    readings = [part.what for part in parts if isinstance(part.what, AttentionRun) and step.traits.probabilities_alive]
    return max((_probabilities(one, step) for one in readings), default=0)


def _normed(part: RunningPart) -> bool:
    """Return whether this norm normalises a block's input, which makes a further tensor."""
    return isinstance(part.what, Norm) and part.start is not None and not (part.what.inner or part.what.after)


def _experts(routing: Routing, step: Step) -> int:
    """Return the peak bytes of the experts: their gathered inputs, and their inside or results.

    The results of a token's experts are put back in order after weighting, in the weights' dtype.
    """
    if routing.scoring == "scaled":  # inputs of every expert; scores before and after the sigmoid
        read = step.tokens * (routing.feed.reads + 2) * step.width
        return routing.experts * (read + _inner(routing.feed, step))
    feed, weighted = routing.feed, step.width if routing.weights == "own" else FLOAT
    gathered = step.tokens * (feed.reads * step.width + 4 * INDEX + 2 * FLOAT)  # inputs, their order and their weights
    results = step.tokens * feed.reads * (step.width + 2 * weighted)
    scores = step.tokens * routing.experts * FLOAT
    return scores + routing.used * (gathered + max(_inner(feed, step), results))


def _inner(feed: FeedForward, step: Step) -> int:
    """Return the peak bytes of an MLP: its activation, or gate, up projection and their product."""
    tensors = WIDEST.get(str(feed.activation), 2)
    if feed.gated:
        tensors = max(tensors, 4 if feed.fused else 3)
    return step.tokens * feed.inner * tensors * step.width


def _attention(reading: AttentionRun, step: Step) -> int:
    """Return the peak bytes of an attention: scores at the softmax, or queries while rotated."""
    heads, width = reading.heads, step.width
    queries, given = heads.queries * heads.size, heads.queries * heads.value_size
    held = _queries_and_keys(reading, step)
    if not scores_by_hand(reading, step):
        whole = heads.rotary is None and not reading.fused and heads.latent is None
        turning = 4 * queries * width if whole else 0
        if step.traits.rotary_upcast and width != FLOAT:
            turning = queries * width + (4 * queries + heads.keys * heads.size) * FLOAT
        return step.tokens * max((held + 2 * given) * width, turning)
    scores, softmax = widths_of_scores(reading, step)
    pairs, each = step.batch * heads.queries * step.sequence**2, scores + softmax
    if step.traits.softmax == "products":  # already in float32
        each = 2 * FLOAT
        held += 0 if width == FLOAT else 2 * queries * (FLOAT // width)  # queries and keys too
    elif softmax != scores or heads.sinks:  # the softmax reads a copy, or scores less the row maximum
        each += softmax
    if not _eager(reading, step):
        copies = queries + (queries + 2 * heads.keys * heads.size if width != FLOAT else 0)  # scaled, and cast
        mask = step.batch * step.sequence**2 * width
        return pairs * each + step.tokens * (held * width + copies * FLOAT) + mask
    if step.traits.unmasked_scores_alive:
        each += scores
    if (
        step.traits.kernel == "eager"
    ):  # Bloom: keys in another memory order; without a wider copy, all live until the residual sum
        held += given * (1 if softmax != scores else 4)
    # A single KV head is broadcast to all queries without a copy.
    repeated = queries + given if 1 < heads.keys < heads.queries and step.traits.kernel == "fused" else 0
    return pairs * each + step.tokens * (held + repeated) * width


def _scan(scan: ChunkedScan, step: Step) -> int:
    """Return the peak bytes of a scan, at its end: all its chunks are still alive."""
    filled = step.batch * scan.chunks(step.sequence) * scan.chunk
    inputs, rows, pairs = 7 * scan.inner, 3 * scan.heads * scan.rows, 3 * scan.heads * scan.chunk
    states = step.batch * (scan.chunks(step.sequence) + 1) * scan.inner * scan.rows
    given = step.tokens * (scan.inner + 2 * scan.convolved + 2 * scan.heads)
    return FLOAT * (filled * (inputs + rows + pairs + 4 * scan.heads) + states) + given * step.width


def _queries_and_keys(reading: AttentionRun, step: Step) -> int:
    """Return the elements for one token of queries, keys and their sources, outside the cache."""
    heads = reading.heads
    queries, keys = heads.queries * heads.size, heads.keys * heads.size
    turned = heads.size if heads.rotary is None else heads.rotary
    if heads.latent is not None:  # projected, concatenated; the up projection's input, keys and values
        unturned = heads.keys * (heads.size - turned + heads.value_size)
        return 3 * queries + unturned + heads.queries * turned + heads.latent
    if reading.fused:
        return queries + keys + heads.keys * heads.value_size + (queries if turned else 0)
    if 0 < turned < heads.size and (step.traits.rotary_parts_alive or step.traits.softmax == "products"):
        # Two views of queries and of keys, and the rotated parts.
        return 2 * queries + keys + (heads.queries + heads.keys) * turned
    return queries


def _probabilities(reading: AttentionRun, step: Step) -> int:
    """Return the bytes of the probabilities, which eager attention returns and its layer holds."""
    return step.batch * reading.heads.queries * step.sequence**2 * step.width if _eager(reading, step) else 0


def _eager(reading: AttentionRun, step: Step) -> bool:
    """Return whether transformers writes out the scores in PyTorch, not torch's fallback kernel."""
    return step.scores == "kept" or step.traits.kernel == "eager"
