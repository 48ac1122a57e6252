"""Find which tensors of a live module share memory, byte by byte.

Objects are compared first, then the bytes that a tensor views. On CPU and CUDA, memory is
identified by address: two storages may be made of one array. Elsewhere the storage object
identifies it: on the meta device all addresses are 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tallystick.formats.storage_overlap import joined, meets_itself
from tallystick.sources.torch_module.live_tensors import identity_of, is_freed, memory_of, shape_of

if TYPE_CHECKING:
    import torch

_ADDRESSED = ("cpu", "cuda")  # devices on which an address and a size identify bytes


class _View(NamedTuple):
    """The bytes of a memory that a tensor views; equal views are equal bytes."""

    storage: str  # the name that first used any of these bytes
    start: int
    layout: tuple[tuple[int, int], ...]  # (stride, size) pairs from `joined`, in bytes

    @property
    def end(self) -> int:
        return self.start + sum((size - 1) * stride for stride, size in self.layout) + 1


class _Memory:
    """The views of one memory, grouped into regions that no view crosses."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._views: list[list[_View]] = []

    def take(self, view: _View) -> tuple[str, int]:
        """Return the name whose bytes a view shares, and the number of its new bytes."""
        low, high = bisect_right(self._ends, view.start), bisect_left(self._starts, view.end)
        near = [other for views in self._views[low:high] for other in views]
        owner, new = _claim(view, near)
        start = min([view.start, *self._starts[low:high]])
        end = max([view.end, *self._ends[low:high]])
        self._starts[low:high], self._ends[low:high] = [start], [end]
        self._views[low:high] = [[*near, view._replace(storage=owner)]]
        return owner, new


class Storages:
    """The bytes of each memory that are already used, and the name that used them first."""

    def __init__(self) -> None:
        self._objects: dict[Hashable, str] = {}
        self._memories: dict[Hashable, _Memory] = {}

    def take(self, name: str, tensor: torch.Tensor) -> tuple[str, int]:
        """Return the name whose memory a tensor shares, and the number of new elements.

        If the memory is new, the name is the tensor's own.

        Args:
            name: the tensor's name.
            tensor: the tensor, which must stay alive.
        """
        identity = identity_of(tensor)
        if identity in self._objects:
            return self._objects[identity], 0
        size = math.prod(shape_of(tensor))
        memory = memory_of(tensor) if size else tensor
        place = _place(memory) if size else None
        if place is None:
            self._objects[identity] = name
            return name, size
        key, start = place
        width = memory.element_size()
        layout = joined((*memory.shape, width), (*(stride * width for stride in memory.stride()), 1))
        owner, new = self._memories.setdefault(key, _Memory()).take(_View(name, start, layout))
        self._objects[identity] = owner
        if memory is not tensor:  # a shard or packed values: has fewer elements than the tensor, and is shared entirely
            return owner, size if owner == name else 0
        return owner, new // width


def _place(tensor: torch.Tensor) -> tuple[Hashable, int] | None:
    """Return a tensor's memory and first byte in it; None if it is empty or has no storage.

    Without real addresses, the key is the address of torch's storage object, which differs on the
    meta device too. It stays valid while the module keeps the tensor alive.
    """
    if tensor.numel() == 0:
        return None
    try:
        storage = tensor.untyped_storage()
        real = tensor.device.type in _ADDRESSED and type(tensor).__name__ != "FakeTensor"
        if real and storage.data_ptr() and not is_freed(tensor):
            return str(tensor.device), tensor.data_ptr()
        return storage._cdata, int(tensor.storage_offset()) * tensor.element_size()
    except (RuntimeError, NotImplementedError):  # wrapper subclasses and sparse tensors have none of their own
        return None


def _claim(view: _View, near: Sequence[_View]) -> tuple[str, int]:
    """Return the name whose memory a view shares, and the number of bytes in no earlier view.

    Disjoint slices of one storage share nothing. If their spans cross, bytes are marked one by one:
    column slices interleave without overlap.
    """
    for other in near:
        if (other.start, other.layout) == (view.start, view.layout):
            return other.storage, 0
    crossing = [other for other in near if other.start < view.end and view.start < other.end]
    if not crossing and not meets_itself(view.layout):
        return view.storage, math.prod(length for _, length in view.layout)

    import torch

    low = min(other.start for other in (view, *crossing))
    high = max(other.end for other in (view, *crossing))
    unit = _unit([view, *crossing], low)
    marks = torch.zeros((high - low) // unit, dtype=torch.bool, device="cpu")

    def marked(of: _View) -> torch.Tensor:
        (_, run), *others = of.layout
        sizes, strides = [run // unit], [1]
        for stride, size in others:
            sizes.append(size)
            strides.append(stride // unit)
        return marks.as_strided(sizes, strides, (of.start - low) // unit)

    owner, before = None, 0
    for other in crossing:
        marked(other).fill_(True)
        if owner is None and bool(marked(view).any()):
            owner = other.storage
    before = int(marks.sum())
    marked(view).fill_(True)
    return owner or view.storage, (int(marks.sum()) - before) * unit


def _unit(views: Sequence[_View], low: int) -> int:
    """Return the largest unit of bytes that every view includes entirely or not at all."""
    return math.gcd(
        *(view.start - low for view in views),
        *(view.layout[0][1] for view in views),
        *(stride for view in views for stride, _ in view.layout[1:]),
    )
