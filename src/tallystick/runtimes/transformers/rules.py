"""What each kind of part keeps for its backward pass: one rule for a kind, none for a family.

A rule counts what torch saves when transformers 5 runs such a part on a CUDA device: tensors that share a storage once,
parameters not at all. Where types differ, `traits` says how.
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
    """Tensors of the inner width that an activation keeps beside its result, which the next product keeps."""

    plain: int  # in the dtype of the products
    powered: int = 0  # those that follow a power, which autocast computes in float32
    copied: int = 0  # those of the powered that are kept in the dtype of the products too, where that is another
    gradients: int = 2  # that its backward pass has at once, more than those that it has let go of


ACTIVATIONS = {
    # The derivative follows from the result.
    "relu": Kept(0),
    "sigmoid": Kept(0),
    "tanh": Kept(0),
    "relu2": Kept(0, powered=1, copied=1, gradients=3),  # the ReLU's result, which is squared
    # Written by hand: each factor of each product.
    "gelu_new": Kept(1, powered=3),  # x/2; x before its cube, the tanh, 1 + the tanh
    "quick_gelu": Kept(2),  # x, and the sigmoid
    "clamped_swiglu": Kept(4, gradients=3),  # gpt-oss: the gate before and after its clamp, its sigmoid, up + 1
    "bloom_gelu": Kept(1, gradients=5),  # its derivative is written by hand too
}
ONE_KERNEL = Kept(1, gradients=1)  # gelu, silu and whatever else torch has in one piece: the input
GATED = 2  # gradients at once of a product of two factors, one of them one kernel's


def activation_of(feed: FeedForward) -> Kept:
    """What the activation of an MLP keeps, and how many gradients it makes at once."""
    found = ACTIVATIONS.get(str(feed.activation), ONE_KERNEL)
    return found._replace(gradients=max(found.gradients, GATED)) if feed.gated else found


# -- how a step runs ------------------------------------------------------------------------------


class Step(NamedTuple):
    """How a step runs, in training or without gradients."""

    batch: int
    sequence: int
    width: int  # bytes of an element that a matrix product gives
    mixed: bool  # autocast: what goes from layer to layer is in float32
    scores: str  # kept | again: computed twice | fused: in a kernel that keeps none
    traits: AttentionTraits = USUAL

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return self.batch * self.sequence

    @property
    def stream(self) -> int:
        """Bytes of an element that goes from layer to layer."""
        return FLOAT if self.mixed else self.width


# -- what each kind of part keeps, in bytes, of all tokens in one layer ---------------------------

Bytes = dict[str, int]  # by what they are of


def _norm(norm: Norm, step: Step, again: bool) -> Bytes:
    """Its input and its statistics: mean and deviation (LayerNorm), or one root (RMSNorm).

    LayerNorm is one kernel. transformers writes RMSNorm by hand, in float32: so a copy of the input where that has 16
    bits, and the normed elements before they are scaled. Gemma's scale, 1 + weight, is a tensor of its own. The book
    writes both norms in the model's dtype; its LayerNorm keeps what is left of the input without its mean as well, as
    does Cohere's, in float32. OLMo's LayerNorm is torch's, of a copy in float32.
    """
    given = step.width if (norm.inner and not norm.turned) or norm.after else step.stream
    if norm.kind in ("layer", "layer32"):
        copied = norm.kind == "layer32" and step.stream != FLOAT
        each = norm.width * (FLOAT if copied else 0 if again else step.stream) + 2 * FLOAT
    elif norm.kind in ("own", "centred", "centred32"):
        wide = FLOAT if norm.kind == "centred32" else given
        each = wide * (norm.width * (2 if norm.kind == "own" else 3) + 1)
    else:
        scaled = {"bare": 0, "rms": given}.get(norm.kind, FLOAT)
        each = norm.width * (FLOAT + scaled) + FLOAT
    scale = norm.width * FLOAT if norm.kind == "gemma" else 0
    return {"norms": step.tokens * norm.times * each + scale}


def _attention(reading: AttentionRun, step: Step, again: bool) -> Bytes:
    """What the projections read, queries, keys and values, what the output projection reads, and the scores.

    A fused kernel keeps one float32 for each query instead of its scores, and computes them again. By hand, keys and
    values are repeated for the queries of their group, and the softmax keeps its result, in float32 for most types:
    then the product with the values keeps a copy in 16 bits. Dropout keeps its mask, and makes that copy another one.
    """
    heads, width = reading.heads, step.width
    queries, given = heads.queries * heads.size, heads.queries * heads.value_size
    read = reading.reads * (reading.readers if step.mixed else 1) + sum(reading.waists)
    if scores_by_hand(reading, step):
        fallback = _fallback(reading, step)
        upcast = FLOAT if fallback or (step.traits.softmax == "products" and not step.mixed) else width
        kept = (read + given) * width + given * (FLOAT if fallback else width) + 2 * queries * upcast
        if reading.fused and heads.rotary != 0 and step.batch == 1 and heads.keys == heads.queries:
            kept += 2 * queries * width  # the values are a slice as they are, and keep the whole
        found = {"attention": step.tokens * kept, "attention probabilities": _scores(reading, step)}
        return (
            {**found, "masks": step.traits.mask_buffer * step.traits.mask_buffer * MASK}
            if step.traits.mask_buffer
            else found
        )
    grouped = heads.keys * (heads.size + heads.value_size)
    if reading.fused:  # values are a slice, which keeps the whole; so are queries and keys where nothing turns them
        turned = 0 if heads.rotary == 0 else queries + heads.keys * heads.size
        kept = queries + grouped + turned
    else:
        kept = queries + grouped
    if heads.latent is not None:  # values are a slice of what makes them and the unturned part of the keys
        kept += heads.keys * (heads.size - (heads.rotary or 0))
    if step.traits.rotary_concatenated:  # in another order in memory, which the output projection copies
        kept += given
    logarithms = FLOAT * heads.queries if step.scores == "fused" else 0
    return {"attention": step.tokens * ((read + kept + given) * width + logarithms)}


def scores_by_hand(reading: AttentionRun, step: Step) -> bool:
    """Whether the scores of an attention are tensors, and not inside a kernel."""
    return step.scores == "kept" or (step.scores == "fused" and step.traits.kernel != "fused")


def _fallback(reading: AttentionRun, step: Step) -> bool:
    return step.scores == "fused" and step.traits.kernel == "float32" and not step.mixed


def widths_of_scores(reading: AttentionRun, step: Step) -> tuple[int, int]:
    """Bytes of an element of the scores, and of the softmax of them."""
    width = FLOAT if _fallback(reading, step) else step.width
    return width, width if step.traits.softmax == "own" and not step.mixed else FLOAT


def _scores(reading: AttentionRun, step: Step) -> int:
    heads, (width, softmax) = reading.heads, widths_of_scores(reading, step)
    copied = softmax != width or heads.dropout
    each = softmax + (width if copied else 0) + (width if heads.capped else 0) + (MASK if heads.dropout else 0)
    rows = step.batch * heads.queries * step.sequence
    sink = rows * (softmax + INDEX) if heads.sinks else 0  # its column, and where each row is largest
    return rows * step.sequence * each + sink


def windows_of(part: RunningPart) -> dict[int | None, int]:
    """How many layers of an attention see how far; of any other part none does."""
    if not isinstance(part.what, AttentionRun):
        return {}
    return Attending(part.name, part.start or 0, part.layers, part.what.heads).windows()


def masked_layers(part: RunningPart, step: Step) -> int:
    """How many layers of a part give their kernel a mask: torch's take a window that is narrower only so.

    Other kernels, which alone can cap scores or have sinks, need none.
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
    """How many layers have a mask, and what each of them keeps for it beside the rest.

    Each makes its mask anew, in the dtype of the products, and repeats keys and values for the queries of their group.
    """
    layers = masked_layers(part, step)
    if not layers or not isinstance(part.what, AttentionRun) or step.traits.kernel != "fused":
        return 0, 0
    heads = part.what.heads
    each = heads.size + heads.value_size
    if heads.keys == heads.queries:
        repeated = 0
    elif part.what.fused:  # the slices are no longer kept
        repeated = heads.queries * heads.value_size - heads.keys * (heads.size + each)
    else:
        repeated = (heads.queries - heads.keys) * each
    return layers, step.tokens * (step.sequence + repeated) * step.width


def chunked(parts: Sequence[RunningPart]) -> bool:
    """Whether windows are chunks: where they begin depends on the padding, so that each sequence has a mask."""
    return any(isinstance(part.what, AttentionRun) and part.what.heads.chunked for part in parts)


def rotary_tables(part: RunningPart, step: Step, *, each: bool = False) -> int:
    """Cosines and sines of each position, once for all layers, or for all that see as far; for each layer where it
    repeats them, if `each` keeps its own.

    GPT-J, whose products alone are in float32, looks them up in every layer anew, and keeps none.
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
    """What some of the layers of a part keep beside the rest: of what, in how many of them, and bytes in each."""
    yield "masks of windows", *masks(part, step)
    if not isinstance(part.what, AttentionRun):
        return
    heads, everywhere = part.what.heads, windows_of(part).get(None, 0)
    near = part.layers - everywhere
    if heads.l2_norm and near:  # in float32: itself, and its root
        yield "norms", near, step.tokens * (heads.queries + heads.keys) * (heads.size + 1) * FLOAT
    if heads.temperature_tuning and everywhere:
        yield "attention", everywhere, step.sequence * FLOAT


def _feed(feed: FeedForward, step: Step, again: bool) -> Bytes:
    """What the projections up read, what the activation keeps, and what the projection down reads.

    Behind a gate the product keeps both of its factors. Autocast copies what it casts once for each projection.
    """
    readers = 2 if feed.gated and not feed.fused else 1
    read = readers if step.mixed else int(not again)
    return {"mlp": step.tokens * (feed.reads * read * step.width + feed.inner * _activation(feed, step))}


def _activation(feed: FeedForward, step: Step) -> int:
    """Bytes for each inner element, up to what the projection down reads."""
    kept = activation_of(feed)
    inside = (kept.plain + kept.copied * step.mixed) * step.width + kept.powered * step.stream
    factors = (step.stream if kept.powered else step.width) + step.width  # what scales, and what is scaled
    return inside + (factors if feed.gated else 0) + step.width


def _routing(routing: Routing, step: Step, again: bool) -> Bytes:
    """What the router keeps, and the experts' inputs and results, gathered in a copy for each expert of a token.

    The experts' products are no operation that autocast knows, so they stay in float32.
    """
    if routing.scoring == "scaled":
        return _scaled(routing, step)
    feed, used, whole = routing.feed, routing.used, step._replace(width=step.stream)
    gathered = used * (2 * feed.reads * whole.width + feed.inner * _activation(feed, whole))
    order = used * 3 * INDEX  # which token, which weight, and the way back
    ends = routing.experts * FLOAT  # where in the order each expert's tokens end
    scores, constant = _router(routing, step)
    return {"experts": step.tokens * (gathered + order + scores) + constant + ends}


def _scaled(routing: Routing, step: Step) -> Bytes:
    """Every expert reads every token, scaled by its score: 0 where it is not chosen.

    The inputs are kept before and after they are scaled, and a copy of the scores; who is chosen; the sigmoids. The
    experts are one batched product, whose matrices autocast copies too.
    """
    feed, width, experts = routing.feed, step.width, routing.experts
    each = feed.reads * (step.stream + width) + feed.inner * _activation(feed, step) + FLOAT + width
    read = feed.reads * width if step.mixed else 0  # else it is what the shared expert reads
    found = {"experts": step.tokens * (experts * each + read + routing.used * INDEX)}
    if step.mixed:
        found["autocast's copies of weights"] = experts * 3 * feed.reads * feed.inner * width
    return found


def _router(routing: Routing, step: Step) -> tuple[int, int]:
    """Bytes of the scores, for each token and beside: what the router reads, who is chosen, and with what weight."""
    reads, used, experts = routing.feed.reads, routing.used, routing.experts
    if routing.scoring == "chosen":  # chosen before they are compared; and each expert has a bias to look up
        return reads * step.width + used * (2 * INDEX + 2 * step.width), 0
    compared = experts * FLOAT + used * (INDEX + 2 * FLOAT) + FLOAT  # all scores, the chosen, their weights, their sum
    if routing.scoring == "softmax":
        return reads * step.width + compared, 0
    compared += experts * MASK  # of the groups that are left out
    if step.mixed:
        return reads * step.width + compared, 0
    if step.width == FLOAT:  # reads what the shared expert reads
        return compared, 0
    return reads * FLOAT + compared, reads * experts * FLOAT  # copies in float32, of the matrix too


def _projection(projection: Projection, step: Step, again: bool) -> Bytes:
    """Its input."""
    return {"other products": step.tokens * projection.reads * step.width}


def _dropout(dropout: Dropout, step: Step, again: bool) -> Bytes:
    """Its mask."""
    return {"dropout": step.tokens * dropout.width * MASK}


def _scan(scan: ChunkedScan, step: Step, again: bool) -> Bytes:
    """Mamba 2 as transformers runs it where no kernel is installed, in chunks, the last one filled up.

    Kept are what the projections read, all that the first gives, the convolution before its activation, and in float32
    the gate and the norm behind it; of each chunk, both factors of each of its products and what decays in it.
    """
    heads, inner, convolved, rows = scan.heads, scan.inner, scan.convolved, scan.heads * scan.rows
    product = step.width if step.mixed else FLOAT  # bytes of a factor
    chunks = scan.chunks(step.sequence)
    carried = chunks + 1  # states: of the chunks, and the one before them
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
    """What one layer of a part keeps, masks of windows left out."""
    return RULES[type(part.what)](part.what, step, part.again)
