"""Memory that PyTorch's allocator takes for an engine's weights, which is more than their bytes.

Engines fuse the projections that read one input, and the allocator rounds each tensor up: constants
of `c10/core/AllocatorConfig.h` and `c10/cuda/CUDACachingAllocator.cpp` in PyTorch. An engine that
reads the device's free memory before and after its load logs this number.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable

from tallystick.answers.memory.number_formats import PACKED, bytes_of, is_kept
from tallystick.core.entries import Entry

MIB = 2**20
ROUNDED = 512  # kMinBlockSize
SMALL = MIB  # kSmallSize: tensors up to this share segments of `SMALL_SEGMENT`
SMALL_SEGMENT = 2 * MIB
SEGMENT = 20 * MIB  # kLargeBuffer: of tensors below `ALONE`
ALONE, MULTIPLE = 10 * MIB, 2 * MIB  # kMinLargeAlloc, kRoundLarge
MOST_TENSORS = 100_000
_FUSED = ((re.compile(r"\b[qkv]_proj\b"), "qkv_proj"), (re.compile(r"\b(?:gate|up)_proj\b|\bw[13]\b"), "gate_up_proj"))


def reserved(entries: Iterable[Entry], form: str | None) -> int:
    """Return the bytes of the segments that hold an engine's weights.

    Packing takes long for a model of many tensors: such a model gets the sum of their bytes.

    Args:
        entries: of one device.
        form: number format of the weights; None: as stored.

    Returns:
        Bytes.
    """
    held = list(entries)
    if sum(int(entry.axes[0].length) if entry.axes else 1 for entry in held) > MOST_TENSORS:
        return sum(bytes_of(entry, form) for entry in held)
    blocks, pool = _blocks(held, form), _Pool()
    for number in sorted(blocks):
        for size in blocks[number]:
            pool.take(size)
    return pool.segments


def _blocks(entries: Iterable[Entry], form: str | None) -> dict[int, list[int]]:
    """Return the sizes of the fused tensors by layer; those outside of layers are before them."""
    found: dict[int, dict[str, int]] = {}
    for entry in entries:
        total = bytes_of(entry, form)
        if not total:
            continue
        start, length = (int(entry.axes[0].start), int(entry.axes[0].length)) if entry.axes else (-1, 1)
        name = entry.name
        for pattern, fused in _FUSED:
            name = pattern.sub(fused, name)
        matrix = _without_scales(entry, form, total)
        for number in range(start, start + length):
            layer = found.setdefault(number, {})
            layer[name] = layer.get(name, 0) + matrix // length
            if matrix != total:
                layer[f"{name} scales"] = layer.get(f"{name} scales", 0) + (total - matrix) // length
    return {number: list(layer.values()) for number, layer in found.items()}


def _without_scales(entry: Entry, form: str | None, total: int) -> int:
    """Return the bytes of an entry's elements; its scales are tensors of their own."""
    if form is None or form not in PACKED or is_kept(entry, form) or len(entry.shape) < 2:
        return total
    return min(int(entry.unique * entry.copies * PACKED[form].bits // 8), total)


class _Pool:
    """Segments and what is free in them; the smallest free part that fits is taken."""

    def __init__(self) -> None:
        self.segments = 0
        self.free: dict[bool, list[int]] = {True: [], False: []}  # of small and of large tensors

    def take(self, size: int) -> None:
        """Allocate one tensor.

        Args:
            size: bytes.
        """
        size = -(-size // ROUNDED) * ROUNDED
        small = size <= SMALL
        parts = self.free[small]
        place = bisect_left(parts, size)
        if place < len(parts):
            part = parts.pop(place)
        else:
            part = SMALL_SEGMENT if small else SEGMENT if size < ALONE else -(-size // MULTIPLE) * MULTIPLE
            self.segments += part
        left = part - size
        if left >= (ROUNDED if small else SMALL + 1):
            insort(parts, left)
