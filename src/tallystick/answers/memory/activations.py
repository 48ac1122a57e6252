"""Activations that training saves for the backward pass, recomputation, and logits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tallystick.answers.memory.lines import Line
from tallystick.core.anatomy import ChunkedScan, Projection
from tallystick.core.dtypes import BITS
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.runtimes import Load, Running, Runtime
from tallystick.runtimes.transformers import TRANSFORMERS

ATTENTION = ("flash", "eager")
RECOMPUTE = ("none", "selective", "full")
LOSS = ("full", "chunked")

FLOAT, INDEX = 4, 8  # bytes of a float32, and of an int64 index
HALF = 2  # bytes of an element in autocast's copies
CAST = ("attention", "mlp", "router", "head", "ssm", "conv", "other")  # roles of the matrices that autocast copies

HSU = "Hsu et al. 2024, Liger Kernel, section 3.2"
KORTHIKANTI = "Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, section 4"
SOURCES = {
    "attention": "Dao et al. 2022, FlashAttention, section 3.1",
    "attention probabilities": KORTHIKANTI,
    "mlp": KORTHIKANTI,
    "block inputs": "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, section 4",
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
    running: Running | None = None,
) -> list[Line]:
    """Return the activations that a training step saves for its backward pass, without the logits.

    Args:
        ledger: a model whose source describes how it runs; otherwise there are no lines.
        batch: sequences per pass.
        sequence: tokens per sequence.
        dtype: of the matrix products.
        attention: ``"flash"``, a fused kernel (torch's, as transformers calls it), or ``"eager"``.
        recompute: ``"none"``; ``"selective"`` recomputes the attention scores; ``"full"``
            recomputes each block from its input.
        precision: ``"mixed"`` is torch.autocast over float32 weights; any other computes in
            `dtype`.
        waiting: micro-batches whose activations a pipeline stage keeps at the same time.
        running: how the model runs; None: as transformers runs its type. For a part of a model,
            pass the whole model's.
    """
    parts = ledger.model.parts
    if not parts:
        return []
    load = Load(batch, sequence, BITS[dtype] // 8, precision == "mixed", attention, recompute)
    read = [entry for entry in ledger.parameters if not entry.name.startswith(ledger.model.towers)]
    learned = any(entry.role == "position_embedding" for entry in read)
    kept = _Sum(load)
    for what, layers, size in (running or running_of(ledger)).saved(parts, load, learned=learned):
        kept.add(what, layers, size)
    if load.mixed:
        for numbered, size in _copies(ledger):
            if numbered is None or recompute != "full":
                kept.add("autocast weight copies", numbered or 1, size)
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
    running: Running | None = None,
) -> list[Line]:
    """Return the memory of recomputation in backward, in addition to `saved`, one layer at a time.

    By then the gradients of the logits are freed. The logits are not, while the caller holds the
    model's output.

    Args: as for `saved` and `logits`.
    """
    parts = ledger.model.parts
    if not parts or recompute == "none" or (recompute == "selective" and attention == "flash"):
        return []
    load = Load(batch, sequence, BITS[dtype] // 8, precision == "mixed", attention, recompute)
    whole = recompute == "full"
    what = "one layer" if whole else "attention scores (one layer)"
    size, added = (running or running_of(ledger)).recomputed(parts, load)
    if whole and load.mixed:
        size += sum(copy for layers, copy in _copies(ledger) if layers is not None)
    lines = [
        Line("recomputed", f"{what}, recomputed", size, f"{size:,} B"),
        Line("recomputed", "its gradients, at most", added, f"{added:,} B"),
    ]
    if loss == "full":
        held = next(iter(logits(ledger, batch, sequence, dtype=dtype)), None)
        lines += [replace(held, part="recomputed", what="logits kept by the caller")] if held else []
    return lines


def logits(ledger: Ledger, batch: int, sequence: int, *, dtype: str, loss: str = "full") -> list[Line]:
    """Return the logits, the loss's saved tensors, and their gradients at the start of backward.

    Args:
        ledger: a model with a head, or with a token embedding that serves as one.
        batch: sequences per pass.
        sequence: tokens per sequence.
        dtype: of the matrix products.
        loss: ``"full"``, cross entropy of all logits in float32, as in transformers; ``"chunked"``,
            one chunk of tokens at a time, whose gradient overwrites its logits.
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
                f"logits of one chunk in {dtype}",
                chunk * vocabulary * width,
                f"{chunk:,} tokens × {vocabulary:,} × {width} B",
                HSU,
            ),
            _line(
                "gradient of the head's input",
                tokens * reads * width,
                f"{tokens:,} tokens × {reads:,} × {width} B",
                HSU,
            ),
        ]
    lines = [_line(f"logits in {dtype}", tokens * vocabulary * width, f"{each} × {width} B")]
    if any(isinstance(part.what, Projection) and part.what.capped for part in ledger.model.parts):
        lines.append(_line("logits before soft-capping", tokens * vocabulary * width, f"{each} × {width} B"))
    kept = tokens * (vocabulary * FLOAT + INDEX) + FLOAT
    gradients = 2 * tokens * vocabulary * FLOAT
    return [
        *lines,
        _line(
            "float32 log-probabilities and targets",
            kept,
            f"{each} × {FLOAT} B + {tokens:,} × {INDEX} B + {FLOAT} B",
        ),
        _line("float32 gradients of log-probabilities and logits", gradients, f"2 × {each} × {FLOAT} B"),
    ]


def _line(what: str, size: int, formula: str, source: str = "") -> Line:
    return Line("logits", what, size, formula, source)


def head_of(ledger: Ledger) -> Entry | None:
    """Return the LM head's matrix; without a config, the token embedding if no head is stored."""
    matrices = [entry for entry in ledger.as_described.parameters if len(entry.shape) == 2]
    for role in ("head",) if ledger.model.recipe else ("head", "token_embedding"):
        for entry in matrices:
            if entry.role == role:
                return entry
    return None


def _chunk(tokens: int, vocabulary: int, reads: int) -> int:
    """Return tokens per chunk, a power of two: its logits are about as large as the head input."""
    share = math.ceil(tokens / math.ceil(vocabulary / reads))
    return min(tokens, 1 << (share - 1).bit_length())


def unmodelled(ledger: Ledger) -> tuple[str, ...]:
    """Return notes on why activations are missing, and on which scan implementation is counted."""
    if any(isinstance(part.what, ChunkedScan) for part in ledger.model.parts):
        return ("scans as in transformers' plain torch; mamba_ssm kernels need less",)
    if ledger.model.parts:
        return ()
    return (f"activations are not counted: {ledger.source} does not describe how its layers run",)


def running_of(ledger: Ledger, runtime: Runtime = TRANSFORMERS) -> Running:
    """Return how a runtime runs a ledger's model, as its config describes it."""
    model = ledger.model
    return runtime.running(model.architecture or "", model.recipe.values if model.recipe else {})


class _Sum:
    """Bytes per kind of tensor, with the sizes that add up to them."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.found: dict[str, dict[int, int]] = {}  # kind of tensor -> number of layers -> bytes in one layer

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
        each, rest = divmod(size, self.load.tokens)
        bytes_ = f"{size:,} B" if rest else f"{self.load.batch:,} × {self.load.sequence:,} tokens × {each:,} B"
        return f"{layers:,} layers × {bytes_}" if layers > 1 else bytes_


def _copies(ledger: Ledger) -> Iterator[tuple[int | None, int]]:
    """Yield (layers, bytes per layer) of autocast's weight copies; layers None: not in a layer."""
    for entry in ledger.as_described.parameters:
        if entry.role in CAST and len(entry.shape) > 1:
            layers = entry.axes[0].length if entry.axes else 1
            yield (int(layers) if entry.axes else None), int(entry.size) * entry.copies // int(layers) * HALF
