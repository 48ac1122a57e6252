"""What data parallel ranks hold for a while beside their shards: what they send, and what they put together.

Measured with torch 2.13: see tests/answers/test_sharding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tallystick.answers.lora import is_adapter
from tallystick.answers.memory import model_states
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.answers.memory.sharding import WHAT, Shards, shard, sharing
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.ledger import Entry, Ledger

DDP = "torch.nn.parallel.DistributedDataParallel: gradient_as_bucket_view is false by default"
FSDP = "torch.distributed.fsdp.fully_shard: reshard_after_forward, implicit prefetching"

Trained = Sequence[tuple[Entry, str]]  # entries, with the dtypes of their gradients


class _Unit(NamedTuple):
    """What `fully_shard` puts together at once, in bytes."""

    weights: int = 0
    gradients: int = 0


def gathered(
    ledger: Ledger, entries: Sequence[Entry], form: str | None, trained: Trained, shards: Shards
) -> list[Line]:
    """What ranks hold for a while, where they share nothing, or all.

    Of DistributedDataParallel: buckets as large as the gradients, which it keeps. Of `fully_shard`, with each layer a
    unit and all the rest another: the weights of the rest, and those of a layer on its way; in the middle of backward
    the layer at work too, its gradients, those of the layer before it that are being sent, and the head's; in the end
    the gradients of the rest, those of a tie from both uses and their sum.

    Args:
        ledger: of the rank.
        entries: its weights, adapters among them.
        form: in which these are kept, None is each tensor's own.
        trained: those that are trained, with the dtypes of their gradients.
        shards: over how many ranks.
    """
    if shards.zero == 0:
        total = sum(_bytes(entry, dtype) for entry, dtype in trained if sharing(entry, shards) > 1)
        what = "buckets that DistributedDataParallel sends"
        return [Line("buckets", what, total, "as large as the gradients", DDP)] if total else []
    if shards.zero < WHAT["weights"]:
        return []

    def unit(layer: int | None) -> _Unit:
        weights = sum(_gathered(entry, shards, form, layer) for entry in entries)
        return _Unit(weights, sum(_gathered(entry, shards, dtype, layer) for entry, dtype in trained))

    begins = {int(entry.axes[0].start) for entry in entries if entry.axes}  # elsewhere layers are as the one before
    root, layer = unit(None), max(map(unit, begins), default=_Unit())
    heads = {entry.storage for entry in ledger.parameters if entry.role == "head"}
    head = sum(_bytes(entry, dtype) for entry, dtype in trained if entry.name in heads)
    both = sum(line.bytes for line in model_states.backward_buffers(ledger, trained))
    forward = {"one": layer.weights, "the one before": layer.weights}
    backward = {"a layer": layer.weights, "gradients of two": 2 * layer.gradients, "the head's": head}
    middle = max(forward, backward, key=_sum)
    first = {"what is in no layer": root.weights, "a layer on its way": layer.weights}
    # The last layers of the backward pass need as much as any, when nearly all gradients are there; then comes the rest.
    last = {"what is in no layer": root.weights, "its gradients": root.gradients, "a tie's before they are added": both}
    ending = max(first | backward, last | {"a layer's gradients": layer.gradients}, key=_sum)
    return [
        _line("gathered", "weights gathered, of what is in no layer and of one layer", first),
        _line("reduced", "a layer at work, and gradients on their way", middle),
        _line("backward_buffers", "gathered and reduced at the end of backward", ending),
    ]


def _sum(sizes: dict[str, int]) -> int:
    return sum(sizes.values())


def _line(part: str, what: str, sizes: dict[str, int]) -> Line:
    formula = " + ".join(f"{size:,} B ({name})" for name, size in sizes.items() if size)
    return Line(part, what, _sum(sizes), formula, FSDP)


def _gathered(entry: Entry, shards: Shards, form: str | None, layer: int | None) -> int:
    """Bytes of an entry in the unit of a layer, or of what is in none: with the padding of all the ranks."""
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
