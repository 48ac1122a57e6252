"""Memory of the backward pass while it recomputes activations that were not saved."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.anatomy import AttentionRun, FeedForward, Norm, Routing, RunningPart
from tallystick.runtimes.transformers.rules import (
    FLOAT,
    Step,
    activation_of,
    extras,
    of_part,
    scores_by_hand,
    widths_of_scores,
)


def recomputed_block(parts: Sequence[RunningPart], step: Step) -> tuple[int, int]:
    """Return the memory of a recomputed block in the backward pass.

    The backward pass frees the parts' activations one by one, the last part first. During the
    gradients of attention, the activations of later parts are already freed.

    Args:
        parts: the parts that run.
        step: how the step runs.

    Returns:
        Bytes of the largest recomputed block, and the most bytes that gradients add.
    """
    blocks: dict[tuple[str, int], list[RunningPart]] = {}
    for part in parts:
        if part.start is not None:
            blocks.setdefault((part.name.partition("{}")[0], part.start), []).append(part)
    kept = {place: sum(_kept(part, step) for part in block) for place, block in blocks.items()}
    whole = max(kept.values(), default=0)
    return whole, max((kept[place] + _added(block, step) for place, block in blocks.items()), default=0) - whole


def recomputed_scores(parts: Sequence[RunningPart], step: Step) -> tuple[int, int]:
    """Return the memory of recomputed attention scores, as `recomputed_block` does for a block."""
    step = step._replace(scores="kept")
    readings = [part for part in parts if isinstance(part.what, AttentionRun)]
    scores = [(of_part(part, step)["attention probabilities"], _gradients(part, step)) for part in readings]
    return max(scores, default=(0, 0))


def _kept(part: RunningPart, step: Step) -> int:
    return sum(of_part(part, step).values()) + sum(each for _, _, each in extras(part, step))


def _added(block: list[RunningPart], step: Step) -> int:
    """Return the peak bytes of the backward pass in addition to what the block keeps."""
    norms = [part.what for part in block if isinstance(part.what, Norm) and not part.what.inner]
    feeds = sum(_kept(part, step) for part in block if isinstance(part.what, FeedForward))
    later = sum(_kept(part, step) for part in block if part.what in norms[1:] or isinstance(part.what, Routing))
    gone = {AttentionRun: feeds + later, Routing: feeds}  # the shared expert runs after the routed ones
    added = max(_gradients(part, step) - gone.get(type(part.what), 0) for part in block)
    # Gradient of the block's output. The block's input, which norms keep uncopied, is already
    # counted.
    copied = bool(norms) and norms[0].kind != "layer" and step.stream != FLOAT
    return added + (step.tokens * norms[0].width * step.stream if copied else 0)


def _gradients(part: RunningPart, step: Step) -> int:
    """Return the most bytes that gradients add to a part's activations, by torch's derivatives.

    Gradients of an activation are made after the down projection has freed its input; gradients of
    a softmax, after the product with the values has freed its inputs.
    """
    what = part.what
    if isinstance(what, FeedForward):
        return step.tokens * what.inner * activation_of(what).gradients * step.width
    if isinstance(what, Routing):
        rows, feed = step.tokens * (what.experts if what.scoring == "scaled" else what.used), what.feed
        inside = (activation_of(feed).gradients * feed.inner - feed.reads) * step.stream
        weighted = step.stream if what.weights == "own" else FLOAT
        return rows * max(inside, 3 * feed.reads * weighted)  # or gradients of the results, put back in token order
    if not isinstance(what, AttentionRun) or not scores_by_hand(what, step):
        return 0
    width, softmax = widths_of_scores(what, step)
    return step.batch * what.heads.queries * step.sequence**2 * (2 * softmax - (width if softmax != width else 0))
