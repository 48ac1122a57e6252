"""What a training step keeps for its backward pass, and the logits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tallystick.anatomy import ChunkedScan, Part, Projection, Reading
from tallystick.answers.again import block_again, scores_again
from tallystick.answers.lines import Line
from tallystick.answers.rules import (
    FLOAT,
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
from tallystick.dtypes import BITS
from tallystick.ledger import Entry, Ledger

ATTENTION = ("flash", "eager")
RECOMPUTE = ("none", "selective", "full")
LOSS = ("full", "chunked")

HALF = 2  # bytes of an element in autocast's copies
CAST = ("attention", "mlp", "router", "head", "ssm", "conv", "other")  # the roles of the matrices that it copies

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
    read = [entry for entry in ledger.parameters if not entry.name.startswith(ledger.towers)]
    learned = any(entry.role == "position_embedding" for entry in read)
    positions = sequence if learned or recompute == "full" else 0  # rotary ones are needed again only to compute again
    kept.add("token ids and positions", 1, (step.tokens + positions) * INDEX)
    for part in parts:
        if recompute != "full" or part.start is None:
            _add(kept, part, step)
    if recompute == "full":
        for part in parts:
            if isinstance(part.what, Reading | ChunkedScan) and part.start is not None:
                kept.add("inputs of blocks", part.layers, step.tokens * part.what.reads * step.stream)
        windows = {window for part in parts for window in windows_of(part)}
        if attention == "eager":
            kept.add("masks", 1, len(windows) * batch * sequence**2 * step.stream)
        elif any(masked_layers(part, step) for part in parts):
            kept.add("masks", 1, (batch if chunked(parts) else 1) * sequence**2 * MASK)
    kept.add("rotary positions", 1, max(rotary_tables(part, step, each=recompute != "full") for part in parts))
    if step.mixed:
        for layers, size in _copies(ledger):
            if layers is None or recompute != "full":
                kept.add("autocast's copies of weights", layers or 1, size)
    return kept.lines(waiting)


def recomputed(
    ledger: Ledger,
    batch: int,
    sequence: int,
    *,
    dtype: str,
    attention: str = "flash",
    recompute: str = "none",
    precision: str = "pure",
    loss: str = "full",
) -> list[Line]:
    """What the backward pass holds beside `saved` while it computes again what that leaves out, for one layer at a time.

    The gradients of the logits are gone by then; the logits are not, as long as the caller holds what the model gave.

    Args: as for `saved` and `logits`.
    """
    parts = parts_of(ledger)
    if not parts or recompute == "none" or (recompute == "selective" and attention == "flash"):
        return []
    step = Step(batch, sequence, BITS[dtype] // 8, precision == "mixed", "fused" if attention == "flash" else "kept")
    whole = recompute == "full"
    what = "one block" if whole else "scores of one layer"
    size, added = map(int, block_again(parts, step) if whole else scores_again(parts, step))
    if whole and step.mixed:
        size += sum(copy for layers, copy in _copies(ledger) if layers is not None)
    lines = [
        Line("recomputed", f"{what}, computed again", size, f"{size:,} B"),
        Line("recomputed", "gradients inside, at most", added, f"{added:,} B"),
    ]
    if loss == "full":
        held = next(iter(logits(ledger, batch, sequence, dtype=dtype)), None)
        lines += [replace(held, part="recomputed", what="logits that the caller holds")] if held else []
    return lines


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
    """The matrix that gives the logits. A config tells it; else the token embedding may stand for a head that is not stored."""
    described = ledger.described or ledger
    matrices = [entry for entry in described.parameters if len(entry.shape) == 2]
    for role in ("head",) if described.recipe else ("head", "token_embedding"):
        for entry in matrices:
            if entry.role == role:
                return entry
    return None


def _chunk(tokens: int, vocabulary: int, reads: int) -> int:
    """Tokens whose logits take about as much as what the head reads of all tokens: a power of two."""
    share = math.ceil(tokens / math.ceil(vocabulary / reads))
    return min(tokens, 1 << (share - 1).bit_length())


def untold(ledger: Ledger) -> tuple[str, ...]:
    """Notes: why there are no activations, if there are none; and of which way to run scans they are."""
    if any(isinstance(part.what, ChunkedScan) for part in parts_of(ledger)):
        return ("scans are those that transformers runs in plain torch: kernels of mamba_ssm keep less",)
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
        return [self._line(what, sizes, waiting) for what, sizes in self.found.items()]

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
    for what, layers, size in extras(part, step):
        kept.add(what, layers, size)


def _copies(ledger: Ledger) -> Iterator[tuple[int | None, int]]:
    """Autocast's copy of each matrix that is no expert's: in how many layers, None outside of them, and its bytes in one."""
    for entry in (ledger.described or ledger).parameters:
        if entry.role in CAST and len(entry.shape) > 1:
            layers = entry.axes[0].length if entry.axes else 1
            yield (int(layers) if entry.axes else None), int(entry.size) * entry.copies // int(layers) * HALF
