"""What reading a prompt takes at once, beside the weights and the cache."""

from __future__ import annotations

from tallystick.anatomy import Feed, Reading, Routing
from tallystick.answers.activations import head_of, parts_of
from tallystick.answers.lines import Line
from tallystick.answers.rules import FLOAT, INDEX, Step
from tallystick.ledger import BITS, Ledger

STREAM = 4  # tensors of a token's width at once: what was embedded, a block's input, the attention's sum, the normed

# Tensors of the inner width at once where an activation is written by hand; others take their input and their result.
WIDEST = {"gelu_new": 4, "clamped_swiglu": 9}


def prefill(ledger: Ledger, batch: int, sequence: int, *, dtype: str, attention: str = "flash") -> list[Line]:
    """The largest set of tensors alive at once in one layer.

    Counted is what transformers holds in inference: the tensors that go from layer to layer, and those of the MLP at
    its product, of the experts at theirs, or of the attention, whichever is most. The cache is not.

    Args:
        ledger: one that tells how its model runs; of any other nothing is known, and there is no line.
        batch: prompts at once.
        sequence: tokens of each.
        dtype: of the matrix products.
        attention: ``"flash"`` or ``"eager"``, as for `saved`.
    """
    parts, width = parts_of(ledger), BITS[dtype] // 8
    if not parts:
        return []
    step = Step(batch, sequence, width, mixed=False, scores="fused" if attention == "flash" else "kept")
    layers = [part for part in parts if isinstance(part.what, Reading | Feed | Routing)]
    beside = max(_left_over(part.what, step) for part in layers)
    size, name = max((int(_alive(part.what, step, beside)), part.name) for part in layers)
    return [Line("activations", f"the tensors of {name} at once", size, f"{size:,} B")]


def last_logits(ledger: Ledger, batch: int, *, dtype: str) -> list[Line]:
    """The logits of the last position.

    Args:
        ledger: one that tells how its model runs; of any other there is no line.
        batch: prompts at once.
        dtype: of the matrix products.
    """
    head = head_of(ledger)
    if head is None or not parts_of(ledger):
        return []
    vocabulary, width = int(head.shape[0]), BITS[dtype] // 8
    formula = f"{batch:,} × {vocabulary:,} × {width} B"
    return [Line("logits", "logits of the last position", batch * vocabulary * width, formula)]


def _alive(what: object, step: Step, beside: int) -> int:
    """Bytes alive in one layer while a part of it runs, `beside` those that eager attention leaves behind."""
    if isinstance(what, Reading):
        return step.tokens * what.reads * (STREAM - 1) * step.width + _attention(what, step)
    if isinstance(what, Routing):
        gathered = what.feed.reads * step.width + 3 * INDEX  # its inputs, and in which order they came
        return _stream(what.feed, step) + what.used * (_inner(what.feed, step) + step.tokens * gathered) + beside
    return _stream(what, step) + _inner(what, step) + beside if isinstance(what, Feed) else 0


def _stream(feed: Feed, step: Step) -> int:
    return step.tokens * feed.reads * STREAM * step.width


def _inner(feed: Feed, step: Step) -> int:
    """Bytes of an MLP at its widest: its activation, or both factors of a gate and their product."""
    tensors = WIDEST.get(str(feed.activation), 2)
    if feed.gated:
        tensors = max(tensors, 4 if feed.fused else 3)
    return step.tokens * feed.inner * tensors * step.width


def _attention(reading: Reading, step: Step) -> int:
    """Bytes of an attention at its widest: its scores at the softmax, or else queries while positions turn them."""
    heads = reading.heads
    queries = heads.queries * heads.size
    if step.scores == "kept" or heads.kernel != "fused":
        softmax = step.width if heads.softmax == "own" else FLOAT
        copied = FLOAT if softmax != step.width else 0  # the scores in float32
        scores = step.batch * heads.queries * step.sequence**2 * (step.width + copied + softmax)
        return scores + step.tokens * (2 * queries + heads.queries * heads.value_size) * step.width + _mask(step)
    turning = 3 * queries if heads.rotary != 0 else heads.queries * heads.value_size
    return step.tokens * (queries + turning + heads.keys * (heads.size + heads.value_size)) * step.width


def _left_over(what: object, step: Step) -> int:
    """Bytes of the mask, and of the probabilities, which eager attention returns and its layer holds."""
    if not isinstance(what, Reading) or (step.scores != "kept" and what.heads.kernel == "fused"):
        return 0
    return step.batch * what.heads.queries * step.sequence**2 * step.width + _mask(step)


def _mask(step: Step) -> int:
    return step.batch * step.sequence**2 * step.width
