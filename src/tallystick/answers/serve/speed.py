"""Bounds on the speed of serving: a roofline of memory bandwidth and of matrix products.

A step of decoding reads all weights that its tokens use and the KV cache of its sequences once,
and multiplies them. No run is faster than the slower of both (Williams et al. 2009, "Roofline").
It is a bound, not a prediction: kernels, communication, sampling and the scheduler take time too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tallystick.answers.compute.compute import compute
from tallystick.answers.devices import Device
from tallystick.answers.memory.activations import running_of
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.core.dtypes import BLOCKS
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

GIB = 2**30
PROMPT = 1024  # tokens of a prompt if none are given
OUTPUT = 128  # tokens that follow it if none are given
BANDWIDTH, PRODUCTS = "memory bandwidth", "matrix products"
ROOFLINE = "Williams et al. 2009, Roofline; {}"
_FOUR, _EIGHT = ("float4", "mxfp4", "nvfp4"), ("float8", "fp8", "int8", "uint8")


class Decoding(NamedTuple):
    """A bound on decoding at one batch. Bytes and FLOPs are of one step on all devices.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> answer.speed.decoding[0].limit
    'memory bandwidth'
    """

    batch: int  # sequences at the same time
    context: int  # tokens of a sequence in the KV cache
    weights_bytes: int  # read in a step
    kv_cache_bytes: int  # read in a step, recurrent states read and written
    flops: int
    tokens_per_second: float  # of all sequences
    limit: str  # "memory bandwidth" | "matrix products"


class Prefill(NamedTuple):
    """A bound on reading one prompt: the time to its first token.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> round(1000 * answer.speed.prefill.seconds, 1)  # 14.6 TFLOP at 989.4 TFLOP/s
    14.7
    """

    prompt: int  # tokens
    weights_bytes: int
    flops: int
    seconds: float  # at least, to the first token
    tokens_per_second: float  # of many prompts, on all devices
    limit: str


class Bound(NamedTuple):
    """A bound in words, how it is computed, and where its numbers are from.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> answer.speed.bounds[0].source
    'Williams et al. 2009, Roofline; NVIDIA H100 data sheet (SXM)'
    """

    line: str
    formula: str
    source: str


@dataclass(frozen=True)
class Speed:
    """Bounds on the speed of one replica: no run is faster.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> round(answer.speed.decoding[0].tokens_per_second)  # 3,350 GB/s over 15.0 GB of weights
    221
    """

    bandwidth: float  # bytes per second of one device
    peak_flops: float  # per second of one device, in `products`
    products: str  # arithmetic of the matrix products
    devices: int
    decoding: tuple[Decoding, ...]  # of one sequence, and of as many as run at the same time
    prefill: Prefill
    bounds: tuple[Bound, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain data. Keys are a contract: added, never renamed."""
        found = asdict(self)
        for name in ("decoding", "bounds"):
            found[name] = [one._asdict() for one in getattr(self, name)]
        return {**found, "prefill": self.prefill._asdict(), "assumptions": list(self.assumptions)}


class Placed(NamedTuple):
    """A model as it is served: its weights' format, and its devices."""

    described: Ledger  # as the model is, for its products
    held: Ledger  # as the weights are stored
    form: str | None  # number format of the weights; None: as stored
    kv_width: float  # bytes of a cached element
    device: Device
    tp: int
    pp: int


def speed_of(placed: Placed, batches: Sequence[int], prompt: int, output: int) -> Speed | None:
    """Return the bounds, or None if the device's bandwidth or its peak is not known.

    Args:
        placed: the model on its devices.
        batches: sequences at the same time, each for a bound on decoding.
        prompt: tokens of a prompt.
        output: tokens that follow it; half of them are in the KV cache on average.
    """
    device = placed.device
    peak, products = _peak(placed)
    if device.bandwidth is None or peak is None:
        return None
    context = max(prompt + output // 2, 1)
    try:
        first = compute(placed.described, sequence=prompt).parts
        step = _step_flops(placed.described, context)
    except BadInput:  # a prompt longer than learned positions, or no matrix to multiply
        return None
    roof = _Roof(placed, device.bandwidth, peak)
    decoding = tuple(roof.decoding(batch, context, step) for batch in dict.fromkeys(batches))
    prefill = roof.prefill(prompt, _prompt_flops(first, prompt))
    return Speed(
        device.bandwidth,
        peak,
        products,
        placed.tp * placed.pp,
        decoding,
        prefill,
        tuple(_bounds(roof, decoding, prefill, products)),
        tuple(_assumptions(placed)),
    )


class _Roof:
    """Bytes and FLOPs per second of all devices, and the weights that a step reads."""

    def __init__(self, placed: Placed, bandwidth: float, peak: float) -> None:
        self.placed, self.bandwidth, self.peak = placed, bandwidth, peak
        self.fixed, self.routed = _read(placed)

    def weights(self, tokens: int) -> int:
        """Return the bytes of weights that a step reads."""
        return self.fixed + round(sum(size * touched(share, tokens) for size, share in self.routed))

    def decoding(self, batch: int, context: int, flops: int) -> Decoding:
        """Return the bound of one step; a token passes all pipeline stages, one after the other."""
        tp, pp = self.placed.tp, self.placed.pp
        weights, cache = self.weights(batch), batch * _cache(self.placed, context)
        read = max(weights / tp, (weights + cache) / (tp * pp)) / self.bandwidth
        multiplied = batch * flops / (tp * pp * self.peak)
        limit = BANDWIDTH if read >= multiplied else PRODUCTS
        return Decoding(batch, context, weights, cache, batch * flops, batch / max(read, multiplied), limit)

    def prefill(self, prompt: int, flops: int) -> Prefill:
        """Return the bound of one prompt, and of many."""
        tp, pp = self.placed.tp, self.placed.pp
        weights = self.weights(prompt)
        read, multiplied = weights / (tp * self.bandwidth), flops / (tp * self.peak)
        limit = BANDWIDTH if read >= multiplied else PRODUCTS
        many = prompt * tp * pp * self.peak / flops
        return Prefill(prompt, weights, flops, max(read, multiplied), many, limit)


def touched(share: float, tokens: int) -> float:
    """Return the expected share of experts that some of the tokens are routed to.

    A token is routed to a share of the experts, each equally likely: the others are left out by
    all tokens with probability (1 - share)^tokens.

    >>> touched(1 / 16, 1), round(touched(1 / 16, 64), 3)
    (0.0625, 0.984)
    """
    return 1 - (1 - share) ** tokens


def _read(placed: Placed) -> tuple[int, list[tuple[int, float]]]:
    """Return the bytes that every step reads, and those of experts with the share a token uses.

    Embeddings are looked up: a step reads a row of them for each token, which is left out. A tied
    embedding is read as the head.
    """
    fixed, routed = 0, []
    towers = placed.held.model.towers
    tied = not any(entry.role == "head" and entry.unique for entry in placed.held.parameters)
    used = max((float(one.active) for one in _experts(placed) if one.active is not None), default=1.0)
    scales = (one for one in placed.held.rolled if one.buffer and one.packed is not None and placed.form is None)
    for entry in (*placed.held.parameters, *scales):
        if towers and entry.name.startswith(towers):
            continue
        if entry.role == "position_embedding" or (entry.role == "token_embedding" and not tied):
            continue
        size = bytes_of(entry, placed.form)
        if entry.role == "experts":
            routed.append((size, used))
        else:
            fixed += size
    return fixed, routed


def _experts(placed: Placed) -> Iterator[Entry]:
    return (entry for entry in placed.held.parameters if entry.role == "experts")


def _cache(placed: Placed, context: int) -> int:
    """Return the bytes of one sequence's KV cache that a step reads, and of its states, twice."""
    model, running = placed.described.model, running_of(placed.described)
    elements = sum(one.total for one in running.cached(model.attending, context))
    states = sum(one.layers * (one.keeps.inputs + one.keeps.state) for one in running.carried(model.recurring))
    return round(elements * placed.kv_width) + 2 * 2 * int(states)


def _prompt_flops(parts: dict[str, dict[str, int]], prompt: int) -> int:
    """Return the FLOPs of reading a prompt: engines compute the logits of its last token alone."""
    every = sum(part["needed_flops"] for part in parts.values())
    head = parts.get("head", {"needed_flops": 0})["needed_flops"]
    return every - head + head // prompt


def _step_flops(ledger: Ledger, context: int) -> int:
    """Return the FLOPs of one token behind `context` others."""
    weights = compute(ledger, sequence=1).needed_flops
    if context == 1:
        return weights
    scores = [
        sum(part["needed_flops"] for name, part in compute(ledger, sequence=length).parts.items() if name in _PAIRS)
        for length in (context - 1, context, 1)
    ]
    return weights + scores[1] - scores[0] - scores[2]


_PAIRS = ("attention_scores", "attention_values")


def _peak(placed: Placed) -> tuple[float | None, str]:
    """Return the fastest rate at which the device can multiply these weights, and its name."""
    device, form = placed.device, placed.form or _most(placed.held)
    wide = device.flops if device.flops_16_sums is None else device.flops_16_sums
    eight = device.flops_8 or wide
    if form.startswith(_FOUR):
        return (device.flops_4, "4-bit products") if device.flops_4 else (eight, "8-bit products")
    if form.startswith(_EIGHT) or form in BLOCKS:
        return eight, "8-bit products"
    return wide, "16-bit products"


def _most(ledger: Ledger) -> str:
    """Return the dtype of most elements of matrices."""
    sizes: dict[str, int] = {}
    for entry in ledger.parameters:
        if len(entry.shape) > 1:
            sizes[entry.dtype] = sizes.get(entry.dtype, 0) + entry.unique * entry.copies
    return max(sizes, key=lambda name: sizes[name], default="")


def _bounds(roof: _Roof, decoding: Sequence[Decoding], prefill: Prefill, products: str) -> Iterator[Bound]:
    tp, pp = roof.placed.tp, roof.placed.pp
    source = ROOFLINE.format(roof.placed.device.source)
    each = f" on {tp * pp} devices" if tp * pp > 1 else ""
    ranks = f" / {tp} ranks" if tp > 1 else ""
    read, multiplied = f"{roof.bandwidth / 1e9:,g} GB/s", f"{roof.peak / 1e12:,g} TFLOP/s"
    for one in decoding:
        why = (
            f"each step reads {one.weights_bytes / GIB:,.2f} GiB of weights and {_size(one.kv_cache_bytes)} of KV cache"
        )
        why = f"{why} at {read}"
        if one.limit == PRODUCTS:
            why = f"each step takes {one.flops / 1e12:,.2f} TFLOP at {multiplied}"
        yield Bound(
            f"decoding cannot exceed {one.tokens_per_second:,.0f} tokens/s at batch {one.batch:,}: {why}{each}",
            f"{one.batch:,} / max(({one.weights_bytes:,} B + {one.kv_cache_bytes:,} B) / {read},"
            f" {one.flops:,} FLOP / {multiplied} of {products}){each}",
            source,
        )
    why = f"{prefill.flops / 1e12:,.1f} TFLOP at {multiplied}"
    if prefill.limit == BANDWIDTH:
        why = f"{prefill.weights_bytes / GIB:,.2f} GiB of weights at {read}"
    yield Bound(
        f"the first token takes at least {prefill.seconds * 1e3:,.1f} ms after a prompt of {prefill.prompt:,} tokens:"
        f" {why}{each}",
        f"max({prefill.weights_bytes:,} B / {read}, {prefill.flops:,} FLOP / {multiplied} of {products}){ranks}",
        source,
    )


def _size(size: int) -> str:
    return f"{size / GIB:,.2f} GiB" if size >= GIB // 100 else f"{size / 2**20:,.1f} MiB"


def _assumptions(placed: Placed) -> Iterator[str]:
    yield "a bound, not a prediction: 80 published runs reached 5 to 85% of it"
    yield "each step reads all used weights and each sequence's KV cache once; no speculative decoding, no shared prefix"
    if any(_experts(placed)):
        yield "experts are equally likely: a step reads those that some of its tokens are expected to use"
    if placed.tp * placed.pp > 1:
        yield "communication between devices takes no time"
