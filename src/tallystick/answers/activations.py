"""The tensors that a training step keeps for its backward pass, and the logits.

One rule for each kind of part (`anatomy.Part`), none for a family. What a rule counts is what torch saves when
transformers 5 runs such a part on a CUDA device; tensors that share a storage are counted once, parameters not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick.anatomy import Attending, Dropout, Feed, Norm, Part, Projection, Reading, Routing
from tallystick.answers.lines import Line
from tallystick.ledger import BITS, Entry, Ledger

ATTENTION = ("flash", "eager")
RECOMPUTE = ("none", "selective", "full")
LOSS = ("full", "chunked")

FLOAT, HALF, INDEX, MASK = 4, 2, 8, 1  # bytes of a float32, a bfloat16, an index (int64), a dropout mask's element
CAST = ("attention", "mlp", "router", "head", "other")  # the roles of the matrices that autocast copies

KORTHIKANTI = "Korthikanti et al. 2022, Reducing Activation Recomputation, section 4"
HSU = "Hsu et al. 2024, Liger Kernel, section 3.2"
DAO = "Dao et al. 2022, FlashAttention, section 3.1"


class Kept(NamedTuple):
    """Tensors of the inner width that an activation keeps beside its result, which the next product keeps."""

    plain: int  # in the dtype of the products
    powered: int = 0  # those that follow a power, which autocast computes in float32


ACTIVATIONS = {
    # The derivative follows from the result.
    "relu": Kept(0),
    "sigmoid": Kept(0),
    "tanh": Kept(0),
    # Written by hand: each factor of each product.
    "gelu_new": Kept(1, powered=3),  # x/2; x before its cube, the tanh, 1 + the tanh
    "quick_gelu": Kept(2),  # x, and the sigmoid
    "clamped_swiglu": Kept(4),  # gpt-oss: the gate before and after its clamp, its sigmoid, up + 1
}
ONE_KERNEL = Kept(1)  # gelu, silu and whatever else torch has in one piece: the input

# -- how a step runs ------------------------------------------------------------------------------


class Step(NamedTuple):
    """How a training step runs."""

    batch: int
    sequence: int
    width: int  # bytes of an element that a matrix product gives
    mixed: bool  # autocast: what goes from layer to layer is in float32
    scores: str  # kept | again: computed twice | fused: in a kernel that keeps none

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
    bits, and the normed elements before they are scaled. Gemma's scale, 1 + weight, is a tensor of its own.
    """
    given = step.width if norm.inner else step.stream
    if norm.kind == "layer":
        each = norm.width * (0 if again else step.stream) + 2 * FLOAT
    else:
        each = norm.width * (FLOAT + (given if norm.kind == "rms" else FLOAT)) + FLOAT
    scale = norm.width * FLOAT if norm.kind == "gemma" else 0
    return {"norms": step.tokens * norm.times * each + scale}


def _attention(reading: Reading, step: Step, again: bool) -> Bytes:
    """What the projections read, queries, keys and values, what the output projection reads, and the scores.

    A fused kernel keeps one float32 for each query instead of its scores, and computes them again. By hand, keys and
    values are repeated for the queries of their group, and the softmax keeps its result, in float32 for most types:
    then the product with the values keeps a copy in 16 bits. Dropout keeps its mask, and makes that copy another one.
    """
    heads, width = reading.heads, step.width
    queries, given = heads.queries * heads.size, heads.queries * heads.value_size
    read = reading.reads * (reading.readers if step.mixed else 1) + sum(reading.waists)
    if step.scores == "kept" or not heads.fusible:
        upcast = FLOAT if heads.softmax == "products" and not step.mixed else width
        kept = (read + 2 * given) * width + 2 * queries * upcast
        if reading.fused and heads.rotary != 0 and step.batch == 1 and heads.keys == heads.queries:
            kept += 2 * queries * width  # the values are a slice as they are, and keep the whole
        return {"attention": step.tokens * kept, "attention probabilities": _scores(reading, step)}
    grouped = heads.keys * (heads.size + heads.value_size)
    if reading.fused:  # values are a slice, which keeps the whole; so are queries and keys where nothing turns them
        turned = 0 if heads.rotary == 0 else queries + heads.keys * heads.size
        kept = queries + grouped + turned
    else:
        kept = queries + grouped
    if heads.latent is not None:  # values are a slice of what makes them and the unturned part of the keys
        kept += heads.keys * (heads.size - (heads.rotary or 0))
    if heads.joined:  # in another order in memory, which the output projection copies
        kept += given
    logarithms = FLOAT * heads.queries if step.scores == "fused" else 0
    return {"attention": step.tokens * ((read + kept + given) * width + logarithms)}


def _scores(reading: Reading, step: Step) -> int:
    heads, width = reading.heads, step.width
    softmax = width if heads.softmax == "own" and not step.mixed else FLOAT
    copied = softmax != width or heads.dropout
    each = softmax + (width if copied else 0) + (width if heads.capped else 0) + (MASK if heads.dropout else 0)
    rows = step.batch * heads.queries * step.sequence
    sink = rows * (softmax + INDEX) if heads.sinks else 0  # its column, and where each row is largest
    return rows * step.sequence * each + sink


def _masks(part: Part, step: Step) -> tuple[int, int]:
    """In how many layers a window is narrower than the sequence, and what each of them keeps beside the rest.

    torch's fused kernels take a window only as a mask, which each layer makes anew in the dtype of the products; and
    beside a mask keys and values are repeated for the queries of their group.
    """
    if not isinstance(part.what, Reading) or step.scores == "kept":
        return 0, 0
    heads = part.what.heads
    windows = Attending(part.name, part.start or 0, part.layers, heads).windows()
    layers = sum(layers for window, layers in windows.items() if window is not None and window <= step.sequence)
    each = heads.size + heads.value_size
    if heads.keys == heads.queries or not layers:
        repeated = 0
    elif part.what.fused:  # the slices are no longer kept
        repeated = heads.queries * heads.value_size - heads.keys * (heads.size + each)
    else:
        repeated = (heads.queries - heads.keys) * each
    return layers, step.tokens * (step.sequence + repeated) * step.width if layers else 0


def _feed(feed: Feed, step: Step, again: bool) -> Bytes:
    """What the projections up read, what the activation keeps, and what the projection down reads.

    Behind a gate the product keeps both of its factors. Autocast copies what it casts once for each projection.
    """
    readers = 2 if feed.gated and not feed.fused else 1
    read = readers if step.mixed else int(not again)
    return {"mlp": step.tokens * (feed.reads * read * step.width + feed.inner * _activation(feed, step))}


def _activation(feed: Feed, step: Step) -> int:
    """Bytes for each inner element, up to what the projection down reads."""
    kept = ACTIVATIONS.get(str(feed.activation), ONE_KERNEL)
    inside = kept.plain * step.width + kept.powered * step.stream
    factors = (step.stream if kept.powered else step.width) + step.width  # what scales, and what is scaled
    return inside + (factors if feed.gated else 0) + step.width


def _routing(routing: Routing, step: Step, again: bool) -> Bytes:
    """What the router keeps, and the experts' inputs and results, gathered in a copy for each expert of a token.

    The experts' products are no operation that autocast knows, so they stay in float32.
    """
    feed, used, experts = routing.feed, routing.used, routing.experts
    whole = step._replace(width=step.stream)
    gathered = used * (2 * feed.reads * whole.width + feed.inner * _activation(feed, whole))
    order = used * 3 * INDEX  # which token, which weight, and the way back
    if routing.scoring == "chosen":  # the best are chosen, then compared in the model's dtype; each has a bias
        scores = feed.reads * step.width + used * (INDEX + 2 * step.width + INDEX)
        constant = 0
    else:
        scores = feed.reads * step.width + experts * FLOAT + used * (INDEX + 2 * FLOAT) + FLOAT
        constant = 0
    if routing.scoring == "sigmoid":  # reads a copy in float32, where what the shared expert reads is none already
        copied = not step.mixed and step.width != FLOAT
        scores += experts * MASK - (0 if step.mixed else feed.reads * step.width)
        scores += feed.reads * FLOAT if copied else 0
        constant = experts * feed.reads * FLOAT if copied else 0
    return {"experts": step.tokens * (gathered + order + scores) + constant + experts * FLOAT}


def _projection(projection: Projection, step: Step, again: bool) -> Bytes:
    """Its input."""
    return {"other products": step.tokens * projection.reads * step.width}


def _dropout(dropout: Dropout, step: Step, again: bool) -> Bytes:
    """Its mask."""
    return {"dropout": step.tokens * dropout.width * MASK}


RULES: dict[type, Callable[[Any, Step, bool], Bytes]] = {
    Norm: _norm,
    Reading: _attention,
    Feed: _feed,
    Routing: _routing,
    Projection: _projection,
    Dropout: _dropout,
}


# -- the answers ----------------------------------------------------------------------------------


def saved(
    ledger: Ledger,
    batch: int,
    sequence: int,
    *,
    dtype: str,
    attention: str = "flash",
    recompute: str = "none",
    precision: str = "pure",
) -> list[Line]:
    """What a training step keeps for its backward pass, the logits left out.

    Args:
        ledger: one that tells how its model runs; of any other nothing is known, and there is no line.
        batch: sequences at once.
        sequence: tokens of each.
        dtype: of the matrix products.
        attention: ``"flash"``, a fused kernel (torch's, as transformers calls it), or ``"eager"``, by hand.
        recompute: ``"none"``; ``"selective"``, the scores of the attention are computed again; ``"full"``, each block
            is, from its input.
        precision: ``"mixed"`` is torch.autocast over weights in float32; any other computes in `dtype` throughout.
    """
    parts = parts_of(ledger)
    scores = "fused" if attention == "flash" else "again" if recompute == "selective" else "kept"
    step = Step(batch, sequence, BITS[dtype] // 8, precision == "mixed", scores)
    kept = _Sum()
    if not parts:
        return []
    learned = any(entry.role == "position_embedding" for entry in ledger.parameters)
    positions = sequence if learned or recompute == "full" else 0  # rotary ones are needed again only to compute again
    kept.add("token ids and positions", 1, (step.tokens + positions) * INDEX)
    for part in parts:
        if recompute != "full" or part.start is None:
            _add(kept, part, step)
    if recompute == "full":
        for part in parts:
            if isinstance(part.what, Reading) and part.start is not None:
                kept.add("inputs of blocks", part.layers, step.tokens * part.what.reads * step.stream)
        kept.add("one block, computed again", 1, _largest_block(parts, step))
        windows = {window for part in parts if isinstance(part.what, Reading) for window, _ in part.what.heads.windows}
        if attention == "eager":
            kept.add("masks", 1, len(windows) * batch * sequence**2 * step.stream)
        elif any(window is not None and window <= sequence for window in windows):
            kept.add("masks", 1, sequence**2 * MASK)
    kept.add("rotary positions", 1, max(_rotary(part.what, step) for part in parts))
    if step.mixed:
        _add_copies(kept, ledger, recompute == "full")
    return kept.lines("activations")


def logits(ledger: Ledger, batch: int, sequence: int, *, dtype: str, loss: str = "full") -> list[Line]:
    """The logits, what the loss keeps of them, and their gradients, all alive when backward begins.

    Args:
        ledger: of a model with a head, or with a token embedding that serves as one.
        batch: sequences at once.
        sequence: tokens of each.
        dtype: of the matrix products.
        loss: ``"full"``, cross entropy of all logits in float32, as transformers has it; ``"chunked"``, of one chunk of
            tokens after another, whose gradient takes the place of its logits.
    """
    head = head_of(ledger)
    if head is None:
        return []
    vocabulary, reads = int(head.shape[0]), int(head.shape[-1])
    tokens, width = batch * sequence, BITS[dtype] // 8
    each = f"{tokens:,} tokens × {vocabulary:,}"
    if loss == "chunked":
        chunk = _chunk(tokens, vocabulary, reads)
        return [
            _line(
                f"logits of a chunk in {dtype}",
                chunk * vocabulary * width,
                f"{chunk:,} tokens × {vocabulary:,} × {width} B",
                HSU,
            ),
            _line(
                "gradient of what the head reads",
                tokens * reads * width,
                f"{tokens:,} tokens × {reads:,} × {width} B",
                HSU,
            ),
        ]
    lines = [_line(f"logits in {dtype}", tokens * vocabulary * width, f"{each} × {width} B")]
    if any(isinstance(part.what, Projection) and part.what.capped for part in parts_of(ledger)):
        lines.append(
            _line("logits before they are scaled to their cap", tokens * vocabulary * width, f"{each} × {width} B")
        )
    kept = tokens * (vocabulary * FLOAT + INDEX) + FLOAT
    gradients = 2 * tokens * vocabulary * FLOAT
    return [
        *lines,
        _line(
            "log-probabilities in float32, and targets",
            kept,
            f"{each} × {FLOAT} B + {tokens:,} × {INDEX} B + {FLOAT} B",
        ),
        _line("gradients of log-probabilities and of logits in float32", gradients, f"2 × {each} × {FLOAT} B"),
    ]


def _line(what: str, size: int, formula: str, source: str = "") -> Line:
    return Line("logits", what, size, formula, source)


def head_of(ledger: Ledger) -> Entry | None:
    """The matrix that gives the logits."""
    matrices = [entry for entry in (ledger.described or ledger).parameters if len(entry.shape) == 2]
    for role in ("head", "token_embedding"):
        for entry in matrices:
            if entry.role == role:
                return entry
    return None


def _chunk(tokens: int, vocabulary: int, reads: int) -> int:
    """Tokens whose logits take about as much as what the head reads of all tokens: a power of two."""
    share = math.ceil(tokens / math.ceil(vocabulary / reads))
    return min(tokens, 1 << (share - 1).bit_length())


def untold(ledger: Ledger) -> tuple[str, ...]:
    """The note that says why there are no activations, if there are none."""
    if parts_of(ledger):
        return ()
    return (f"{ledger.source} does not tell how its layers run, so activations are left out",)


def parts_of(ledger: Ledger) -> tuple[Part, ...]:
    """What runs in the model of a ledger, or in the one that the config beside it describes."""
    return (ledger.described or ledger).parts


class _Sum:
    """Bytes by what they are of, and the sizes that they are sums of."""

    def __init__(self) -> None:
        self.found: dict[str, dict[int, int]] = {}  # of what -> how many layers -> bytes in one of them

    def add(self, what: str, layers: int, size: int) -> None:
        if size:
            sizes = self.found.setdefault(what, {})
            sizes[int(layers)] = sizes.get(int(layers), 0) + int(size)

    def lines(self, part: str) -> list[Line]:
        return [
            Line(
                part,
                what,
                sum(layers * size for layers, size in sizes.items()),
                " + ".join(
                    f"{layers:,} × {size:,} B" if layers > 1 else f"{size:,} B" for layers, size in sizes.items()
                ),
                SOURCES.get(what, ""),
            )
            for what, sizes in self.found.items()
        ]


SOURCES = {
    "attention": DAO,
    "attention probabilities": KORTHIKANTI,
    "mlp": KORTHIKANTI,
    "inputs of blocks": "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, section 4",
}


def _add(kept: _Sum, part: Part, step: Step) -> None:
    for what, size in RULES[type(part.what)](part.what, step, part.again).items():
        kept.add(what, part.layers, size)
    kept.add("masks of windows", *_masks(part, step))


def _largest_block(parts: tuple[Part, ...], step: Step) -> int:
    """Bytes of the block that keeps most, which backward computes again."""
    blocks: dict[tuple[str, int], int] = {}
    for part in parts:
        if part.start is not None:
            block = part.name.partition("{}")[0], part.start
            size = sum(RULES[type(part.what)](part.what, step, part.again).values()) + _masks(part, step)[1]
            blocks[block] = blocks.get(block, 0) + size
    return max(blocks.values(), default=0)


def _rotary(what: object, step: Step) -> int:
    """Cosines and sines of each position, once for all layers."""
    if not isinstance(what, Reading):
        return 0
    turned = what.heads.size if what.heads.rotary is None else what.heads.rotary
    return 2 * step.sequence * turned * step.stream


def _add_copies(kept: _Sum, ledger: Ledger, again: bool) -> None:
    """Autocast's copy of each matrix that is no expert's; of blocks that are computed again only one is at hand."""
    for entry in (ledger.described or ledger).parameters:
        if entry.role in CAST and len(entry.shape) == 2:
            layers = entry.axes[0].length if entry.axes else 1
            size = int(entry.size) * entry.copies // int(layers) * HALF
            if again and entry.axes:
                kept.add("one block, computed again", 1, size)
            else:
                kept.add("autocast's copies of weights", layers, size)
