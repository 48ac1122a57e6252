"""What a training step keeps for its backward pass, and the logits."""

from __future__ import annotations

import math

from tallystick.anatomy import Part, Projection, Reading
from tallystick.answers.lines import Line
from tallystick.answers.rules import FLOAT, INDEX, MASK, Step, masked_layers, masks, of_part, windows_of
from tallystick.ledger import BITS, Entry, Ledger

ATTENTION = ("flash", "eager")
RECOMPUTE = ("none", "selective", "full")
LOSS = ("full", "chunked")

AGAIN = "one block, computed again"  # of one batch, however many wait
HALF = 2  # bytes of an element in autocast's copies
CAST = ("attention", "mlp", "router", "head", "other")  # the roles of the matrices that it copies

HSU = "Hsu et al. 2024, Liger Kernel, section 3.2"
KORTHIKANTI = "Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, section 4"
SOURCES = {
    "attention": "Dao et al. 2022, FlashAttention, section 3.1",
    "attention probabilities": KORTHIKANTI,
    "mlp": KORTHIKANTI,
    "inputs of blocks": "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, section 4",
}


def saved(
    ledger: Ledger,
    batch: int,
    sequence: int,
    *,
    dtype: str,
    attention: str = "flash",
    recompute: str = "none",
    precision: str = "pure",
    waiting: int = 1,
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
        waiting: batches for which a stage of a pipeline keeps them at once.
    """
    parts = parts_of(ledger)
    scores = "fused" if attention == "flash" else "again" if recompute == "selective" else "kept"
    step = Step(batch, sequence, BITS[dtype] // 8, precision == "mixed", scores)
    kept = _Sum(step)
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
        kept.add(AGAIN, 1, _largest_block(parts, step))
        windows = {window for part in parts for window in windows_of(part)}
        if attention == "eager":
            kept.add("masks", 1, len(windows) * batch * sequence**2 * step.stream)
        elif any(masked_layers(part, step) for part in parts):
            kept.add("masks", 1, sequence**2 * MASK)
    kept.add("rotary positions", 1, max(_rotary(part, step) for part in parts))
    if step.mixed:
        _add_copies(kept, ledger, recompute == "full")
    return kept.lines(waiting)


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

    def __init__(self, step: Step) -> None:
        self.step = step
        self.found: dict[str, dict[int, int]] = {}  # of what -> how many layers -> bytes in one of them

    def add(self, what: str, layers: int, size: int) -> None:
        if size:
            sizes = self.found.setdefault(what, {})
            sizes[int(layers)] = sizes.get(int(layers), 0) + int(size)

    def lines(self, waiting: int) -> list[Line]:
        return [self._line(what, sizes, 1 if what == AGAIN else waiting) for what, sizes in self.found.items()]

    def _line(self, what: str, sizes: dict[int, int], times: int) -> Line:
        total = times * sum(layers * size for layers, size in sizes.items())
        formula = " + ".join(self._product(layers, size) for layers, size in sizes.items())
        if times > 1:
            formula = f"{times:,} micro-batches × ({formula})"
        return Line("activations", what, total, formula, SOURCES.get(what, ""))

    def _product(self, layers: int, size: int) -> str:
        each, rest = divmod(size, self.step.tokens)
        bytes_ = f"{size:,} B" if rest else f"{self.step.batch:,} × {self.step.sequence:,} tokens × {each:,} B"
        return f"{layers:,} layers × {bytes_}" if layers > 1 else bytes_


def _add(kept: _Sum, part: Part, step: Step) -> None:
    for what, size in of_part(part, step).items():
        kept.add(what, part.layers, size)
    kept.add("masks of windows", *masks(part, step))


def _largest_block(parts: tuple[Part, ...], step: Step) -> int:
    """Bytes of the block that keeps most, which backward computes again."""
    blocks: dict[tuple[str, int], int] = {}
    for part in parts:
        if part.start is not None:
            block = part.name.partition("{}")[0], part.start
            size = sum(of_part(part, step).values()) + masks(part, step)[1]
            blocks[block] = blocks.get(block, 0) + size
    return max(blocks.values(), default=0)


def _rotary(part: Part, step: Step) -> int:
    """Cosines and sines of each position, once for all layers, or for all that see as far."""
    if not isinstance(part.what, Reading):
        return 0
    heads = part.what.heads
    turned = heads.size if heads.rotary is None else heads.rotary
    return 2 * step.sequence * turned * step.stream * (len(windows_of(part)) if heads.apart else 1)


def _add_copies(kept: _Sum, ledger: Ledger, again: bool) -> None:
    """Autocast's copy of each matrix that is no expert's; of blocks that are computed again only one is at hand."""
    for entry in (ledger.described or ledger).parameters:
        if entry.role in CAST and len(entry.shape) == 2:
            layers = entry.axes[0].length if entry.axes else 1
            size = int(entry.size) * entry.copies // int(layers) * HALF
            if again and entry.axes:
                kept.add(AGAIN, 1, size)
            else:
                kept.add("autocast's copies of weights", layers, size)
