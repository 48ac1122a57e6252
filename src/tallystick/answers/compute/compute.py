"""Count the FLOPs of a model's matrix products: part by part, forward and backward.

A product of m × k and k × n takes 2·m·k·n operations: one multiplication and one addition each.
Only matrix products are counted, as in `torch.utils.flop_counter` and in papers. All other work
(norms, activations, softmax, rotary embeddings, embedding lookups) adds less than one percent in a
model of any size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tallystick.answers.compute.products import Product
from tallystick.answers.compute.scans import scan
from tallystick.answers.compute.throughput import Rate, check_mode, rate
from tallystick.answers.devices import Device
from tallystick.answers.memory.activations import running_of
from tallystick.answers.parts import kind_of
from tallystick.answers.workload import workload
from tallystick.core.anatomy import Attending, Indexer, Mixing
from tallystick.core.display import Displayed
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.errors import BadInput
from tallystick.runtimes import Running, Runtime
from tallystick.runtimes.transformers import TRANSFORMERS

# In the order of the table. An embedding is a lookup: its line shows 0 FLOPs.
PARTS = (
    "embedding",
    "attention_projections",
    "attention_scores",
    "attention_values",
    "mlp",
    "experts",
    "router",
    "ssm",
    "conv",
    "other",
    "head",
)
_PART_OF = {"token_embedding": "embedding", "position_embedding": "embedding", "attention": "attention_projections"}
_LOOKED_UP = "embedding"
_AFTER_ATTENTION = ("mlp", "experts", "router")

KAPLAN = "Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1"
PALM = "Chowdhery et al. 2022, PaLM, appendix B"

# Cross-attention, which runs only when the decoder has an encoder.
_CROSS = re.compile(r"(^|\.)(cross_?att\w*|encoder_attn)\.")

# Embeddings that are added to the attention values.
_BY_ROW = re.compile(r"(^|\.)value_embed")

# Tensors with several axes that are added or multiplied elementwise, not in a matrix product.
_BY_ELEMENT = re.compile(r"(^|\.)(A_log|D|time_mix_\w+|\w+_l2_clip\.scale|attention\.[uv])$")


@dataclass(frozen=True)
class Approximation:
    """An estimate by a rule of thumb, to compare with the exact number."""

    what: str
    parameters: int  # the N of 6·N
    training_flops: int  # 6·N per token
    ratio: float  # estimate / exact number


@dataclass(frozen=True, repr=False)
class Compute(Displayed):
    """FLOPs of one pass over `batch` sequences of `sequence` tokens.

    >>> import tallystick
    >>> answer = tallystick.compute("gpt2", sequence=1)
    >>> answer.parts["head"]["forward_flops"] == 2 * 50_257 * 768  # one token
    True
    """

    source: str
    batch: int
    sequence: int
    lines: tuple[Product, ...]
    approximations: tuple[Approximation, ...]
    complete: bool  # False if the source does not describe everything that runs
    notes: tuple[str, ...]
    rate: Rate | None = None  # speed on a device, if one was named

    @property
    def tokens(self) -> int:
        """Tokens of one pass."""
        return self.batch * self.sequence

    @property
    def forward_flops(self) -> int:
        """FLOPs of the forward pass."""
        return sum(product.forward_flops for product in self.lines)

    @property
    def backward_flops(self) -> int:
        """FLOPs of the backward pass, without recomputation."""
        return sum(product.backward_flops for product in self.lines)

    @property
    def training_flops(self) -> int:
        """FLOPs of both passes: the number that MFU counts, and the cost with eager attention."""
        return self.forward_flops + self.backward_flops

    @property
    def needed_flops(self) -> int:
        """FLOPs of the forward pass that the result depends on."""
        return sum(product.needed_flops for product in self.lines)

    @property
    def flash_training_flops(self) -> int:
        """FLOPs of both passes with a fused attention kernel.

        The backward kernel recomputes the attention scores, at the cost of their forward pass (Dao
        et al. 2022, "FlashAttention", section 3.1).
        """
        again = (product.backward_flops // 2 for product in self.lines if product.part == "attention_scores")
        return self.training_flops + sum(again)

    @property
    def parts(self) -> dict[str, dict[str, int]]:
        """FLOPs of each part that the model has, in the order of `PARTS`."""
        sums: dict[str, dict[str, int]] = {}
        for part in PARTS:
            products = [product for product in self.lines if product.part == part]
            if products:
                sums[part] = {
                    "forward_flops": sum(product.forward_flops for product in products),
                    "training_flops": sum(product.forward_flops + product.backward_flops for product in products),
                    "needed_flops": sum(product.needed_flops for product in products),
                }
        return sums

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick compute``. Keys are a contract: added, never renamed."""
        return {
            "source": self.source,
            "batch": self.batch,
            "sequence": self.sequence,
            "forward_flops": self.forward_flops,
            "backward_flops": self.backward_flops,
            "training_flops": self.training_flops,
            "flash_training_flops": self.flash_training_flops,
            "needed_flops": self.needed_flops,
            "parts": self.parts,
            "lines": [asdict(product) for product in self.lines],
            "approximations": [asdict(approximation) for approximation in self.approximations],
            **({"rate": self.rate.to_dict()} if self.rate else {}),
            "complete": self.complete,
            "notes": list(self.notes),
        }


def compute(
    ledger: Ledger,
    *,
    batch: int = 1,
    sequence: int | None = None,
    mode: str = "training",
    tokens: int | str | None = None,
    device: Device | None = None,
    mfu: float | None = None,
    tokens_per_second: float | None = None,
    devices: int | None = None,
    runtime: Runtime = TRANSFORMERS,
) -> Compute:
    """Count a model's FLOPs for `batch` sequences, with logits for every token.

    Training adds one product for the gradient of each trained weight. It adds another for the
    gradient of the weight's input if an earlier tensor, in the model's print order, is trained too.
    So when all weights are trained, the backward pass takes twice the forward pass.

    Args:
        ledger: the model, from a config, a checkpoint or a module.
        batch: sequences per pass.
        sequence: tokens per sequence; default: the number of learned positions, or 4,096.
        mode: ``"training"``, or ``"inference"`` (forward pass only).
        tokens: tokens of the whole run, in sequences of this length.
        device: the device to run on.
        mfu: share of the device's peak FLOP/s that the run reaches.
        tokens_per_second: tokens per second on one device, instead of `mfu`.
        devices: number of such devices; the time of the run is divided by it.
        runtime: the runtime that runs the model.

    Raises:
        BadInput: for invalid or contradictory numbers, and for a model without a matrix.
    """
    check_mode(mode)
    sequence, notes = workload(ledger, batch, sequence)
    running = _running(ledger)
    model = ledger.model
    attending, recurring = model.attending, model.recurring
    entries = [entry for entry in running.parameters if not _CROSS.search(entry.name)]
    if len(entries) < len(running.parameters):
        notes.append("cross-attention is not counted: it runs only with an encoder")
    if model.towers:
        notes.append("vision and audio towers are not counted: text tokens skip them")
        entries = [entry for entry in entries if not entry.name.startswith(model.towers)]
    unmodelled = [entry for entry in entries if entry.role == "experts" and entry.active is None]
    if unmodelled:
        notes.append("experts are not counted: the source does not state how many a token uses (a native config does)")
    entries = [entry for entry in entries if entry not in unmodelled]
    unscanned = any(one.keeps.state and one.keeps.runs is None for one in recurring)
    if unscanned:
        notes.append("recurrent scans are not counted, only products with weights")
    elif not attending and not recurring:
        why = model.irregular or "the source does not describe them (a native config does)"
        notes.append(f"attention scores and recurrent scans are not counted: {why}")
    if model.irregular:
        notes.append(f"assumes that each weight processes every token once, but {model.irregular}")
    if not any(entry.role == "head" for entry in entries):
        why = "the model has none" if model.recipe else "the source stores none (it may be tied)"
        notes.append(f"no LM head is counted: {why}")
    learning, how = _Learning(entries, model.unlearned), running_of(ledger, runtime)
    products = [
        *_weights(learning.entries, learning, batch, sequence),
        *(product for one in attending for product in _attention(one, how, learning, batch, sequence)),
        *(_mixing(one, learning, batch, sequence) for one in model.mixing),
        *(
            product
            for one in recurring
            for product in scan(one, learning.layers(one.start, one.layers)[1], batch, sequence)
        ),
    ]
    if not products:
        raise BadInput(f"{ledger.source} has no weight matrices to multiply", code="no-answer")
    products.sort(key=lambda product: PARTS.index(product.part))
    answer = Compute(
        ledger.source,
        batch,
        sequence,
        tuple(products),
        (),
        bool(attending or recurring) and not unmodelled and not unscanned and not model.irregular,
        (*notes, *_notes(entries, attending, sequence, learning)),
    )
    thumb = () if learning.frozen else tuple(_rules_of_thumb(running, answer))
    answer = replace(answer, approximations=thumb)
    if device is None and tokens is None and mfu is None and tokens_per_second is None and devices is None:
        return answer
    reached = rate(
        {"training": answer.training_flops // answer.tokens, "inference": answer.forward_flops // answer.tokens},
        mode=mode,
        tokens=tokens,
        device=device,
        mfu=mfu,
        tokens_per_second=tokens_per_second,
        devices=devices,
    )
    return replace(answer, rate=reached)


def _running(ledger: Ledger) -> Ledger:
    """Return the ledger of the model that runs.

    For a checkpoint it is the described model: a tied head may be stored once, and weights packed.
    A live module runs as it is, with adapters that its config does not list, unless it is packed.
    """
    packed = any("int" in entry.dtype for entry in ledger.parameters if kind_of(entry) == "matrix")
    return ledger.as_described if ledger.kind != "module" or packed else ledger


# -- what is trained ------------------------------------------------------------------------------


class _Learning:
    """The products that the backward pass takes. If nothing is frozen, all of them."""

    def __init__(self, entries: Sequence[Entry], never: tuple[str, ...]) -> None:
        self.never = never  # name prefixes of the tensors without gradients
        # Stored sinusoidal tables are frozen too, but do not count: tensors before them are
        # trained.
        self.frozen = not all(entry.trainable or entry.role == "position_embedding" for entry in entries)
        # Layer by layer if some tensors are frozen; otherwise rolled up, at any number of layers.
        self.entries = [single for entry in entries for single in entry.unrolled()] if self.frozen else list(entries)
        self.first = next((place for place, entry in enumerate(self.entries) if entry.trainable), len(self.entries))

    def gradients(self, place: int) -> int:
        """Return the number of gradients of this product: of the weight, and of its input."""
        entry, before = self.entries[place], not self.frozen or place > self.first
        if template_of(entry.name)[0].startswith(self.never):
            return 0
        return int(entry.trainable) + int(before)

    def layers(self, start: int, count: int) -> tuple[int, int]:
        """Return the first layer in the range whose attention has gradients, and their number."""
        if not self.frozen:
            return start, count
        end = start + count
        first = int(min(max(self._first_layer(), start), end))
        return first, end - first

    def _first_layer(self) -> float:
        """Return the first layer whose attention has gradients."""
        if self.first == len(self.entries):
            return math.inf
        entry = self.entries[self.first]
        numbers = template_of(entry.name)[1]
        if not numbers:
            return math.inf if entry.role == "head" else 0
        return int(numbers[0]) + (entry.role in _AFTER_ATTENTION)


# -- products with weights ------------------------------------------------------------------------


def _weights(entries: Sequence[Entry], learning: _Learning, batch: int, sequence: int) -> list[Product]:
    """Return one product per matrix; single layers of a live module are summed."""
    tokens = batch * sequence
    found: dict[tuple[str, tuple[int, ...]], list[tuple[Entry, int]]] = {}
    for place, entry in enumerate(entries):
        if kind_of(entry) == "matrix" and not _BY_ELEMENT.search(entry.name):
            template = entry.name if entry.axes else template_of(entry.name)[0]
            found.setdefault((template, entry.shape), []).append((entry, learning.gradients(place)))
    products = []
    for (template, shape), stack in found.items():
        entry, copies = stack[0][0], sum(entry.copies for entry, _ in stack)
        part = _LOOKED_UP if _BY_ROW.search(template) else _PART_OF.get(entry.role, entry.role)
        if part == _LOOKED_UP:
            products.append(Product(part, template, 0, 0, 0, "0: rows are looked up", KAPLAN))
            continue
        # A causal convolution pads the end by kernel - 1 positions and discards their outputs.
        read = tokens + batch * (int(shape[-1]) - 1) if part == "conv" else tokens
        flops = [int(2 * read * entry.size * entry.copies * (entry.active or 1)) for entry, _ in stack]
        backward = sum(count * gradients for count, (_, gradients) in zip(flops, stack, strict=True))
        factors = ["2", f"{read:,} tokens", *([f"{copies:,}"] if copies > 1 else [])]
        factors += [f"{int(dim):,}" for dim in shape]
        if entry.active is not None:
            factors.append(f"{entry.active} of the experts" if part == "experts" else f"{entry.active} of them")
        needed = sum(flops) // read * tokens
        products.append(Product(part, template, sum(flops), backward, needed, " × ".join(factors), KAPLAN))
    return products


# -- attention itself -----------------------------------------------------------------------------


def _attention(one: Attending, how: Running, learning: _Learning, batch: int, sequence: int) -> Iterator[Product]:
    """Yield query-key and weight-value products, over the pairs that the runtime multiplies."""
    first, count = learning.layers(one.start, one.layers)
    heads, learned = one.heads, one._replace(start=first, layers=count).windows()
    if heads.indexer and heads.indexer.heads:
        yield _choosing(one, heads.indexer, batch, sequence)
    for window, layers in one.windows().items():
        pairs = batch * layers * int(heads.queries)
        most = heads.indexer.chosen if heads.indexer else window
        needed = visible(sequence, most, chunked=heads.chunked) if heads.causal else sequence**2
        multiplied = how.pairs(heads, window, sequence)
        positions = f"{sequence:,} × {sequence:,}" if multiplied == sequence**2 else f"{multiplied:,} pairs"
        factors = f"{batch:,} × {layers:,} layers × {int(heads.queries):,} heads × {positions}"
        for part, what, size in (
            ("attention_scores", "queries with keys", int(heads.size)),
            *([("attention_scores", "queries with relative positions", int(heads.size))] if heads.relative else []),
            ("attention_values", "attention weights with values", int(heads.value_size)),
        ):
            yield Product(
                part,
                f"{one.name}: {what}" + (f", window {int(window):,}" if window else ""),
                2 * pairs * multiplied * size,
                4 * batch * learned.get(window, 0) * int(heads.queries) * multiplied * size,
                2 * pairs * needed * size,
                f"2 × {factors} × {size:,}",
                PALM,
            )


def _choosing(one: Attending, indexer: Indexer, batch: int, sequence: int) -> Product:
    """Return the products of an indexer's queries with its keys, which have no gradients."""
    heads, layers = int(indexer.heads), int(one.layers)
    size = int(indexer.size) + indexer.weighed
    each = 2 * batch * layers * heads * size
    factors = f"{batch:,} × {layers:,} layers × {heads:,} heads × {sequence:,} × {sequence:,}"
    return Product(
        "attention_scores",
        f"{one.name}: index scores",
        each * sequence**2,
        0,
        each * visible(sequence, None),
        f"2 × {factors} × {size:,}",
        "DeepSeek-AI 2025, DeepSeek-V3.2, section 2.1",
    )


def _mixing(one: Mixing, learning: _Learning, batch: int, sequence: int) -> Product:
    """Return the products that a layer takes in addition to its weights and its attention."""
    _, learned = learning.layers(one.start, one.layers)
    each = 2 * batch * sequence * one.multiplications
    factors = f"2 × {batch * sequence:,} tokens × {one.layers:,} × {one.multiplications:,}"
    return Product(
        "other",
        f"{one.name}: products of activations",
        one.layers * each,
        2 * learned * each,
        one.layers * each,
        factors,
    )


def visible(sequence: int, window: int | None, *, chunked: bool = False) -> int:
    """Return the number of pairs of a position and a position that it attends to.

    A position attends to itself and to the positions before it, within its window or its chunk.

    Args:
        sequence: positions of the sequence.
        window: positions that one position attends to, itself included; None is all.
        chunked: whether `window` is the length of disjoint chunks.

    >>> visible(4, None), visible(4, 2), visible(4, 9), visible(4, 3, chunked=True)
    (10, 7, 10, 7)
    """
    seen = sequence if window is None else min(int(window), sequence)
    if chunked and seen:
        chunks, rest = divmod(sequence, seen)
        return (chunks * seen * (seen + 1) + rest * (rest + 1)) // 2
    return seen * (seen + 1) // 2 + (sequence - seen) * seen


# -- notes and rules of thumb ---------------------------------------------------------------------


def _notes(
    entries: Sequence[Entry], attending: Sequence[Attending], sequence: int, learning: _Learning
) -> Iterator[str]:
    if any(entry.role == "head" and not entry.unique for entry in entries):
        yield "a tied head still costs FLOPs"
    shares = {entry.active for entry in entries if entry.active is not None and entry.role == "experts"}
    if shares:
        share = max(shares)
        yield (
            f"counts only the experts that a token uses ({share} of all); all experts would cost"
            f" {float(1 / share):g} times the FLOPs"
        )
    windows = {int(window) for one in attending for window in one.windows() if window is not None}
    if any(window < sequence for window in windows):
        yield "scores outside the window are computed, then masked; needed_flops leaves them out"
    if learning.frozen:
        yield "frozen weights: gradients are counted from the first trained tensor on (accurate to one layer)"


def _rules_of_thumb(ledger: Ledger, answer: Compute) -> Iterator[Approximation]:
    """Yield 6·N per token, for every N in common use."""
    totals = ledger.totals
    unique, active, rest = totals["unique"], totals["active"], totals["non_embedding"]
    weights = sum(p.forward_flops for p in answer.lines if not p.part.startswith(("attention_s", "attention_v")))
    idle = 0 if unique is None or active is None else unique - active
    said = {
        "all parameters": unique,
        "active parameters": active if idle else None,
        "parameters without embeddings and head (Kaplan et al. 2020)": None if rest is None else rest - idle,
        "parameters used in matrix products": weights // (2 * answer.tokens),
    }
    for what, parameters in said.items():
        if parameters is not None:
            flops = 6 * int(parameters) * answer.tokens
            yield Approximation(what, int(parameters), flops, round(flops / answer.training_flops, 6))
