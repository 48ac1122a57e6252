"""Count the FLOPs of a model's matrix products: part by part, forward and backward.

A product of m × k and k × n takes 2·m·k·n operations: one multiplication and one addition each.
Only matrix products are counted, as in `torch.utils.flop_counter` and in papers. All other work
(norms, activations, softmax, rotary embeddings, embedding lookups) adds less than one percent in a
model of any size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tallystick.answers.compute.attention import attention_products, mixing_product
from tallystick.answers.compute.gradients import Gradients
from tallystick.answers.compute.products import Product
from tallystick.answers.compute.scans import scan
from tallystick.answers.compute.throughput import Rate, check_mode, rate
from tallystick.answers.compute.weights import weight_products
from tallystick.answers.devices import Device
from tallystick.answers.memory.activations import running_of
from tallystick.answers.parts import kind_of
from tallystick.answers.workload import workload
from tallystick.core.description import ModelDescription
from tallystick.core.display import Displayed
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
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

# Cross-attention, which runs only when the decoder has an encoder.
_CROSS = re.compile(r"(^|\.)(cross_?att\w*|encoder_attn)\.")

_UNROUTED = "experts are not counted: the source does not state how many a token uses (a native config does)"


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
    running, model = _running(ledger), ledger.model
    entries, left_out = _multiplied(running, model.towers)
    unscanned = any(one.keeps.state and one.keeps.runs is None for one in model.recurring)
    gradients = Gradients(entries, model.unlearned)
    products = [
        *weight_products(gradients, batch, sequence),
        *_activation_products(model, running_of(ledger, runtime), gradients, batch, sequence),
    ]
    if not any(product.forward_flops for product in products):  # an embedding is looked up
        raise BadInput(f"{ledger.source} has no weight matrices to multiply", code="no-answer")
    products.sort(key=lambda product: PARTS.index(product.part))
    notes += [*left_out, *_not_counted(model, entries, unscanned), *_notes(model, sequence, gradients)]
    described = bool(model.attending or model.recurring) and not unscanned and not model.irregular
    answer = Compute(
        ledger.source, batch, sequence, tuple(products), (), described and _UNROUTED not in left_out, tuple(notes)
    )
    thumb = () if gradients.frozen else tuple(_rules_of_thumb(running, answer))
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


def _multiplied(running: Ledger, towers: tuple[str, ...]) -> tuple[list[Entry], list[str]]:
    """Return the parameters that process text tokens, and notes on those that are left out."""
    notes, entries = [], [entry for entry in running.parameters if not _CROSS.search(entry.name)]
    if len(entries) < len(running.parameters):
        notes.append("cross-attention is not counted: it runs only with an encoder")
    if towers:
        notes.append("vision and audio towers are not counted: text tokens skip them")
        entries = [entry for entry in entries if not entry.name.startswith(towers)]
    routed = [entry for entry in entries if entry.role != "experts" or entry.active is not None]
    if len(routed) < len(entries):
        notes.append(_UNROUTED)
    return routed, notes


def _activation_products(
    model: ModelDescription, how: Running, gradients: Gradients, batch: int, sequence: int
) -> Iterator[Product]:
    """Yield the products of activations with activations: attention, mixing and scans."""
    for attending in model.attending:
        yield from attention_products(attending, how, gradients, batch, sequence)
    for mixing in model.mixing:
        yield mixing_product(mixing, gradients, batch, sequence)
    for recurring in model.recurring:
        yield from scan(recurring, gradients.layers(recurring.start, recurring.layers)[1], batch, sequence)


def _not_counted(model: ModelDescription, entries: Sequence[Entry], unscanned: bool) -> Iterator[str]:
    """Yield what the count leaves out or assumes because the source does not describe it."""
    if unscanned:
        yield "recurrent scans are not counted, only products with weights"
    elif not model.attending and not model.recurring:
        why = model.irregular or "the source does not describe them (a native config does)"
        yield f"attention scores and recurrent scans are not counted: {why}"
    if model.irregular:
        yield f"assumes that each weight processes every token once, but {model.irregular}"
    if not any(entry.role == "head" for entry in entries):
        why = "the model has none" if model.recipe else "the source stores none (it may be tied)"
        yield f"no LM head is counted: {why}"


def _notes(model: ModelDescription, sequence: int, gradients: Gradients) -> Iterator[str]:
    """Yield what a reader may miss in the counted products."""
    entries = gradients.entries
    if any(entry.role == "head" and not entry.unique for entry in entries):
        yield "a tied head still costs FLOPs"
    shares = {entry.active for entry in entries if entry.active is not None and entry.role == "experts"}
    if shares:
        share = max(shares)
        yield (
            f"counts only the experts that a token uses ({share} of all); all experts would cost"
            f" {float(1 / share):g} times the FLOPs"
        )
    windows = {int(window) for one in model.attending for window in one.windows() if window is not None}
    if any(window < sequence for window in windows):
        yield "scores outside the window are computed, then masked; needed_flops leaves them out"
    if gradients.frozen:
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
