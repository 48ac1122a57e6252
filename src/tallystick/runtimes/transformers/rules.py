"""Activations saved for the backward pass: one rule for each kind of part, none per family.

A rule counts the tensors that torch saves when transformers 5 runs such a part on a CUDA device.
Tensors that share a storage count once, parameters not at all. `traits` lists differences of
model types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tallystick.core.anatomy import (
    Attending,
    AttentionRun,
    ChunkedScan,
    Dropout,
    FeedForward,
    Norm,
    Projection,
    Routing,
    RunningPart,
)
from tallystick.runtimes.transformers.traits import USUAL, AttentionTraits

FLOAT, INDEX, MASK = 4, 8, 1  # bytes of a float32, of an index (int64), of an element of a mask (bool)


class Kept(NamedTuple):
    """Tensors of the inner width that an activation saves, besides its result.

    The next product saves the result.
    """

    plain: int  # in the dtype of the products
    powered: int = 0  # computed after a power, which autocast does in float32
    copied: int = 0  # of the `powered`: also saved in the dtype of the products, if that differs
    gradients: int = 2  # alive at once in its backward pass, in addition to saved tensors not yet freed


ACTIVATIONS = {
    # The derivative is computed from the result.
    "relu": Kept(0),
    "sigmoid": Kept(0),
    "tanh": Kept(0),
    "relu2": Kept(0, powered=1, copied=1, gradients=3),  # the ReLU's result, which is squared
    # Written out in PyTorch: each factor of each product is saved.
    "gelu_new": Kept(1, powered=3),  # x/2; x before its cube, the tanh, 1 + the tanh
    "quick_gelu": Kept(2),  # x, and the sigmoid
    "clamped_swiglu": Kept(4, gradients=3),  # gpt-oss: the gate before and after its clamp, its sigmoid, up + 1
    "bloom_gelu": Kept(1, gradients=5),  # its derivative is written out too
}
ONE_KERNEL = Kept(1, gradients=1)  # gelu, silu and other single kernels of torch: the input
GATED = 2  # gradients alive at once of a product of two factors, one of them from a single kernel


def activation_of(feed: FeedForward) -> Kept:
    """Return the tensors that an MLP's activation saves, and its gradients alive at once."""
    found = ACTIVATIONS.get(str(feed.activation), ONE_KERNEL)
    return found._replace(gradients=max(found.gradients, GATED)) if feed.gated else found


# -- how a step runs ------------------------------------------------------------------------------


class Step(NamedTuple):
    """How a step runs, in training or without gradients."""

    batch: int
    sequence: int
    width: int  # bytes of an element of a matrix product's result
    mixed: bool  # autocast: the residual stream is in float32
    scores: str  # kept: saved | again: recomputed | fused: in a kernel that saves none
    traits: AttentionTraits = USUAL

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return self.batch * self.sequence

    @property
    def stream(self) -> int:
        """Bytes of an element of the residual stream."""
        return FLOAT if self.mixed else self.width


# -- saved bytes by kind of part, for all tokens in one layer -------------------------------------

Bytes = dict[str, int]  # kind of tensor -> bytes


def _norm(norm: Norm, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of a norm's input and statistics.

    Statistics are mean and deviation (LayerNorm), or one root (RMSNorm).

    LayerNorm is one kernel. transformers writes RMSNorm out in float32. So it saves a float32 copy
    of a 16-bit input, and the normalised elements before scaling. Gemma's scale, 1 + weight, is a
    tensor of its own. The book writes both norms in the model's dtype. Its LayerNorm also saves the
    centred input, as does Cohere's, in float32. OLMo's LayerNorm is torch's, of a float32 copy.
    """
    given = step.width if (norm.inner and not norm.turned) or norm.after else step.stream
    if norm.kind in ("layer", "layer32"):
        copied = norm.kind == "layer32" and step.stream != FLOAT
        each = norm.width * (FLOAT if copied else 0 if shares_input else step.stream) + 2 * FLOAT
    elif norm.kind in ("own", "centred", "centred32"):
        wide = FLOAT if norm.kind == "centred32" else given
        each = wide * (norm.width * (2 if norm.kind == "own" else 3) + 1)
    else:
        scaled = {"bare": 0, "rms": given}.get(norm.kind, FLOAT)
        each = norm.width * (FLOAT + scaled) + FLOAT
    scale = norm.width * FLOAT if norm.kind == "gemma" else 0
    return {"norms": step.tokens * norm.times * each + scale}


def _attention(reading: AttentionRun, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of the projections' inputs, queries, keys, values, result and scores.

    A fused kernel saves one float32 for each query instead of its scores, and recomputes them.
    Eager attention repeats keys and values for the queries of their group. Its softmax saves its
    result, in float32 for most types; then the product with the values saves a 16-bit copy. Dropout
    saves its mask, and its result is a further tensor.
    """
    heads, width = reading.heads, step.width
    queries, given = heads.queries * heads.size, heads.queries * heads.value_size
    read = reading.reads * (reading.readers if step.mixed else 1) + sum(reading.waists)
    if scores_by_hand(reading, step):
        fallback = _fallback(reading, step)
        upcast = FLOAT if fallback or (step.traits.softmax == "products" and not step.mixed) else width
        kept = (read + given) * width + given * (FLOAT if fallback else width) + 2 * queries * upcast
        if reading.fused and heads.rotary != 0 and step.batch == 1 and heads.keys == heads.queries:
            kept += 2 * queries * width  # values are a slice, and keep the whole fused result
        found = {"attention": step.tokens * kept, "attention probabilities": _scores(reading, step)}
        return (
            {**found, "masks": step.traits.mask_buffer * step.traits.mask_buffer * MASK}
            if step.traits.mask_buffer
            else found
        )
    grouped = heads.keys * (heads.size + heads.value_size)
    if reading.fused:  # values are a slice and keep the whole; so do queries and keys without rotation
        turned = 0 if heads.rotary == 0 else queries + heads.keys * heads.size
        kept = queries + grouped + turned
    else:
        kept = queries + grouped
    if heads.latent is not None:  # values are a slice of a tensor that also holds the unrotated part of the keys
        kept += heads.keys * (heads.size - (heads.rotary or 0))
    if step.traits.rotary_concatenated:  # in another memory order, which the output projection copies
        kept += given
    logarithms = FLOAT * heads.queries if step.scores == "fused" else 0
    return {"attention": step.tokens * ((read + kept + given) * width + logarithms)}


def scores_by_hand(reading: AttentionRun, step: Step) -> bool:
    """Return whether attention scores are tensors, and not internal to a kernel."""
    return step.scores == "kept" or (step.scores == "fused" and step.traits.kernel != "fused")


def _fallback(reading: AttentionRun, step: Step) -> bool:
    return step.scores == "fused" and step.traits.kernel == "float32" and not step.mixed


def widths_of_scores(reading: AttentionRun, step: Step) -> tuple[int, int]:
    """Return the bytes of one element of the attention scores, and of one of their softmax."""
    width = FLOAT if _fallback(reading, step) else step.width
    return width, width if step.traits.softmax == "own" and not step.mixed else FLOAT


def _scores(reading: AttentionRun, step: Step) -> int:
    heads, (width, softmax) = reading.heads, widths_of_scores(reading, step)
    copied = softmax != width or heads.dropout
    each = softmax + (width if copied else 0) + (width if heads.capped else 0) + (MASK if heads.dropout else 0)
    rows = step.batch * heads.queries * step.sequence
    sink = rows * (softmax + INDEX) if heads.sinks else 0  # its column, and the index of each row's maximum
    return rows * step.sequence * each + sink


def windows_of(part: RunningPart) -> dict[int | None, int]:
    """Return the number of an attention's layers by window size; empty for any other part."""
    if not isinstance(part.what, AttentionRun):
        return {}
    return Attending(part.name, part.start or 0, part.layers, part.what.heads).windows()


def masked_layers(part: RunningPart, step: Step) -> int:
    """Return how many layers of a part pass a mask to their kernel.

    torch's kernel needs a mask for a window up to the sequence's length. Other kernels need none;
    only they can cap scores or have sinks.
    """
    if not isinstance(part.what, AttentionRun) or step.scores != "fused":
        return 0
    heads = part.what.heads
    if heads.capped or heads.sinks:
        return 0
    return sum(
        layers
        for window, layers in windows_of(part).items()
        if step.traits.always_masked or (window is not None and window <= step.sequence)
    )


def masks(part: RunningPart, step: Step) -> tuple[int, int]:
    """Return how many layers have a mask, and the additional bytes of each.

    Each layer makes its mask in the dtype of the products, and repeats keys and values for the
    queries of their group.
    """
    layers = masked_layers(part, step)
    if not layers or not isinstance(part.what, AttentionRun) or step.traits.kernel != "fused":
        return 0, 0
    heads = part.what.heads
    each = heads.size + heads.value_size
    if heads.keys == heads.queries:
        repeated = 0
    elif part.what.fused:  # the slices are no longer saved
        repeated = heads.queries * heads.value_size - heads.keys * (heads.size + each)
    else:
        repeated = (heads.queries - heads.keys) * each
    return layers, step.tokens * (step.sequence + repeated) * step.width


def chunked(parts: Sequence[RunningPart]) -> bool:
    """Return whether windows are chunks. Chunks start after the padding: one mask per sequence."""
    return any(isinstance(part.what, AttentionRun) and part.what.heads.chunked for part in parts)


def rotary_tables(part: RunningPart, step: Step, *, each: bool = False) -> int:
    """Return the bytes of the rotary cosines and sines of all positions.

    They exist once for all layers, once for each window size, or in each layer that repeats them.
    GPT-J, with float32 only in its products, looks them up in every layer and saves none.

    Args:
        part: the attention.
        step: how the step runs.
        each: whether layers that repeat the tables keep their own.
    """
    if not isinstance(part.what, AttentionRun) or step.traits.softmax == "products":
        return 0
    heads = part.what.heads
    turned = heads.size if heads.rotary is None else heads.rotary
    return (
        2
        * step.sequence
        * turned
        * (FLOAT if step.traits.rotary_float32 else step.stream)
        * (len(windows_of(part)) if step.traits.rotary_per_window else 1)
        * (part.layers if step.traits.rotary_per_layer and each else 1)
    )


def extras(part: RunningPart, step: Step) -> Iterator[tuple[str, int, int]]:
    """Yield further tensors of some layers of a part: kind, number of layers, bytes in each."""
    yield "window masks", *masks(part, step)
    if not isinstance(part.what, AttentionRun):
        return
    heads, everywhere = part.what.heads, windows_of(part).get(None, 0)
    near = part.layers - everywhere
    if heads.l2_norm and near:  # in float32: the normalised elements, and the root
        yield "norms", near, step.tokens * (heads.queries + heads.keys) * (heads.size + 1) * FLOAT
    if heads.temperature_tuning and everywhere:
        yield "attention", everywhere, step.sequence * FLOAT


def _feed(feed: FeedForward, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of an MLP: up projections' input, activation, down projection's input.

    A gated product saves both of its factors. Autocast casts once for each projection.
    """
    readers = 2 if feed.gated and not feed.fused else 1
    read = readers if step.mixed else int(not shares_input)
    return {"mlp": step.tokens * (feed.reads * read * step.width + feed.inner * _activation(feed, step))}


def _activation(feed: FeedForward, step: Step) -> int:
    """Return the bytes for each inner element, including the down projection's input."""
    kept = activation_of(feed)
    inside = (kept.plain + kept.copied * step.mixed) * step.width + kept.powered * step.stream
    factors = (step.stream if kept.powered else step.width) + step.width  # the gate, and the up projection's result
    return inside + (factors if feed.gated else 0) + step.width


def _routing(routing: Routing, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of the router, and of the experts' gathered inputs and results.

    Each expert of a token gets a copy of the token. Autocast does not cast the experts' products,
    so they stay in float32.
    """
    if routing.scoring == "scaled":
        return _scaled(routing, step)
    feed, used, whole = routing.feed, routing.used, step._replace(width=step.stream)
    gathered = used * (2 * feed.reads * whole.width + feed.inner * _activation(feed, whole))
    order = used * 3 * INDEX  # token index, weight index, and the inverse order
    ends = routing.experts * FLOAT  # end of each expert's tokens in the order
    scores, constant = _router(routing, step)
    return {"experts": step.tokens * (gathered + order + scores) + constant + ends}


def _scaled(routing: Routing, step: Step) -> Bytes:
    """Return the bytes of experts that each read every token, scaled by its score.

    The score is 0 for experts that are not selected. Saved are the inputs before and after scaling,
    a copy of the scores, the selection, and the sigmoids. The experts are one batched product;
    autocast copies its matrices too.
    """
    feed, width, experts = routing.feed, step.width, routing.experts
    each = feed.reads * (step.stream + width) + feed.inner * _activation(feed, step) + FLOAT + width
    read = feed.reads * width if step.mixed else 0  # otherwise the shared expert's input, counted there
    found = {"experts": step.tokens * (experts * each + read + routing.used * INDEX)}
    if step.mixed:
        found["autocast weight copies"] = experts * 3 * feed.reads * feed.inner * width
    return found


def _router(routing: Routing, step: Step) -> tuple[int, int]:
    """Return the bytes of the router for each token, and those independent of tokens."""
    reads, used, experts = routing.feed.reads, routing.used, routing.experts
    if routing.scoring == "chosen":  # selected before the softmax; and a bias lookup for each expert
        return reads * step.width + used * (2 * INDEX + 2 * step.width), 0
    compared = experts * FLOAT + used * (INDEX + 2 * FLOAT) + FLOAT  # all scores, selected ones, weights, their sum
    if routing.scoring == "softmax":
        return reads * step.width + compared, 0
    compared += experts * MASK  # mask of the groups that are left out
    if step.mixed:
        return reads * step.width + compared, 0
    if step.width == FLOAT:  # its input is the shared expert's
        return compared, 0
    return reads * FLOAT + compared, reads * experts * FLOAT  # float32 copies of the input and of the weight matrix


def _projection(projection: Projection, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of the product's input."""
    return {"other activations": step.tokens * projection.reads * step.width}


def _dropout(dropout: Dropout, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of the dropout mask."""
    return {"dropout": step.tokens * dropout.width * MASK}


def _scan(scan: ChunkedScan, step: Step, shares_input: bool) -> Bytes:
    """Return the bytes of a Mamba 2 scan, as transformers runs it without kernels.

    The scan runs in chunks; the last one is padded. Saved are the inputs of the projections, the
    first projection's result, and the convolution before its activation. The gate and the norm
    after it are saved in float32. Each chunk saves both factors of each of its products, and its
    decays.
    """
    heads, inner, convolved, rows = scan.heads, scan.inner, scan.convolved, scan.heads * scan.rows
    product = step.width if step.mixed else FLOAT  # bytes of a factor
    chunks = scan.chunks(step.sequence)
    carried = chunks + 1  # states of the chunks, and the initial one
    filled = step.batch * chunks * scan.chunk
    given = step.width * (scan.reads + 2 * inner + convolved + 3 * heads)
    wide = FLOAT * (heads + 3 * inner + scan.groups + (convolved if step.width == FLOAT else 2 * inner + heads))
    sums = {
        "tokens": step.tokens * (given + wide),
        "convolution": step.batch * (step.sequence + scan.kernel - 1) * convolved * step.width,
        "factors": filled * (FLOAT * (2 * inner + rows + 2 * heads) + product * (3 * inner + 4 * rows)),
        "pairs": filled * scan.chunk * heads * (FLOAT + 2 * product) + 2 * scan.chunk * scan.chunk * MASK,
        "states": step.batch * (carried + chunks) * scan.inner * scan.rows * product,
        "decays": carried * carried * (step.batch * heads * FLOAT + 2 * MASK),
    }
    return {"scans": sum(sums.values())}


RULES: dict[type, Callable[[Any, Step, bool], Bytes]] = {
    Norm: _norm,
    AttentionRun: _attention,
    FeedForward: _feed,
    Routing: _routing,
    Projection: _projection,
    Dropout: _dropout,
    ChunkedScan: _scan,
}


def of_part(part: RunningPart, step: Step) -> Bytes:
    """Return the bytes that one layer of a part saves, without masks of windows."""
    return RULES[type(part.what)](part.what, step, part.shares_input)
