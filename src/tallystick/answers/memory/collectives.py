"""Transient memory of data parallel ranks: DDP buckets, gathered weights, reduced gradients.

Measured with torch 2.13: see tests/answers/test_sharding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tallystick.answers.lora import is_adapter
from tallystick.answers.memory import model_states
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.answers.memory.placement import Shards
from tallystick.answers.memory.sharding import WHAT, shard, sharing
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger

DDP = "torch.nn.parallel.DistributedDataParallel: gradient_as_bucket_view is false by default"
FSDP = "torch.distributed.fsdp.fully_shard: reshard_after_forward, implicit prefetching"

Trained = Sequence[tuple[Entry, str]]  # entries, with the dtypes of their gradients


class _Unit(NamedTuple):
    """Bytes that `fully_shard` gathers for one unit."""

    weights: int = 0
    gradients: int = 0


def gathered(
    ledger: Ledger, entries: Sequence[Entry], form: str | None, trained: Trained, shards: Shards
) -> list[Line]:
    """Return the transient memory of data parallel ranks: DDP (ZeRO 0) or `fully_shard` (ZeRO 3).

    DistributedDataParallel keeps buckets as large as the gradients. With `fully_shard`, each layer
    is a unit, and all other tensors are the root unit. At the start of backward, the root's weights
    and one prefetched layer's weights are gathered. In the middle, the current layer's weights and
    gradients are there too. So are the head's gradient and the previous layer's gradients, which
    are being reduced. At the end, there are the root's gradients, and for a tied matrix both
    gradients and their sum.

    Args:
        ledger: the model of one rank.
        entries: its weights and adapters.
        form: dtype or packed format of the weights; None keeps each tensor's own.
        trained: the trained entries, with the dtypes of their gradients.
        shards: the parallelism.
    """
    if shards.zero == 0:
        total = sum(_bytes(entry, dtype) for entry, dtype in trained if sharing(entry, shards) > 1)
        what = "DDP gradient buckets"
        return [Line("buckets", what, total, "as large as the gradients", DDP)] if total else []
    if shards.zero < WHAT["weights"]:
        return []

    def unit(layer: int | None) -> _Unit:
        weights = sum(_gathered(entry, shards, form, layer) for entry in entries)
        return _Unit(weights, sum(_gathered(entry, shards, dtype, layer) for entry, dtype in trained))

    begins = {int(entry.axes[0].start) for entry in entries if entry.axes}  # layers between two starts are equal
    root, layer = unit(None), max(map(unit, begins), default=_Unit())
    heads = {entry.storage for entry in ledger.parameters if entry.role == "head"}
    head = sum(_bytes(entry, dtype) for entry, dtype in trained if entry.name in heads)
    both = sum(line.bytes for line in model_states.backward_buffers(ledger, trained))
    forward = {"one": layer.weights, "previous layer": layer.weights}
    backward = {"a layer": layer.weights, "gradients of two layers": 2 * layer.gradients, "the head's": head}
    middle = max(forward, backward, key=_sum)
    first = {"embeddings and head": root.weights, "prefetched layer": layer.weights}
    # The last layers of the backward pass can be the peak, when nearly all gradients exist; then
    # the root unit follows.
    last = {
        "embeddings and head": root.weights,
        "its gradients": root.gradients,
        "unsummed gradients of the tied matrix": both,
    }
    ending = max(first | backward, last | {"a layer's gradients": layer.gradients}, key=_sum)
    return [
        _line("gathered", "all-gathered weights (embeddings + one layer)", first),
        _line("reduced", "one layer's gradients in flight", middle),
        _line("backward_buffers", "final reduce-scatter buffers", ending),
    ]


def _sum(sizes: dict[str, int]) -> int:
    return sum(sizes.values())


def _line(part: str, what: str, sizes: dict[str, int]) -> Line:
    formula = " + ".join(f"{size:,} B ({name})" for name, size in sizes.items() if size)
    return Line(part, what, _sum(sizes), formula, FSDP)


def _gathered(entry: Entry, shards: Shards, form: str | None, layer: int | None) -> int:
    """Return an entry's gathered bytes, with padding, in a layer's unit or the root unit (None)."""
    if not entry.unique or not _is_in(entry, layer):
        return 0
    [part] = shard([entry], shards, "weights")
    size = bytes_of(part, None if is_adapter(entry) else form) * sharing(entry, shards)
    return size if layer is None else size // int(entry.axes[0].length)


def _is_in(entry: Entry, layer: int | None) -> bool:
    if layer is None or not entry.axes:
        return layer is None and not entry.axes
    return 0 <= layer - int(entry.axes[0].start) < int(entry.axes[0].length)


def _bytes(entry: Entry, dtype: str) -> int:
    return size_in_bytes(entry.unique, dtype) * entry.copies
