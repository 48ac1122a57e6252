"""Which tensors of a live module share memory, element by element.

Told first by object, then by the storage under a tensor and the elements of it that the tensor sees.
Addresses are never compared: on the meta device all are 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from tallystick.sources.tensors import identity_of, memory_of, shape_of
from tallystick.sources.views import joined

if TYPE_CHECKING:
    import torch


class _View(NamedTuple):
    """The elements of a storage that a tensor sees; equal views are equal elements."""

    storage: str  # the name that first used any of these elements
    start: int
    layout: tuple[tuple[int, int], ...]  # as `joined` gives it

    @property
    def end(self) -> int:
        return self.start + sum((size - 1) * stride for stride, size in self.layout) + 1


class Storages:
    """Which elements of which storage are taken already, and by what name first."""

    def __init__(self) -> None:
        self._objects: dict[Hashable, str] = {}
        self._views: dict[tuple[int, int], list[_View]] = {}

    def take(self, name: str, tensor: torch.Tensor) -> tuple[str, int]:
        """The name whose storage this tensor shares (its own if nobody's), and how many of its elements are new."""
        identity = identity_of(tensor)
        if identity in self._objects:
            return self._objects[identity], 0
        size = math.prod(shape_of(tensor))
        memory = memory_of(tensor) if size else tensor
        key = _storage_key(memory) if size else None
        if key is None:
            self._objects[identity] = name
            return name, size
        view = _View(name, int(memory.storage_offset()), joined(memory.shape, memory.stride()))
        taken = self._views.setdefault((key, memory.element_size()), [])
        owner, new = _claim(view, taken)
        taken.append(view._replace(storage=owner))
        self._objects[identity] = owner
        if memory is not tensor:  # a shard or packed values: fewer elements here than the tensor has, and shared whole
            new = size if owner == name else 0
        return owner, new


def _storage_key(tensor: torch.Tensor) -> int | None:
    """What identifies the storage under a tensor, None where it holds nothing or cannot be seen.

    The address of torch's own storage object, not of its data: it differs on the meta device too.
    It is valid while the tensor lives, and the module keeps it alive.
    """
    if tensor.numel() == 0:
        return None
    try:
        key: int = tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # wrapper subclasses and sparse tensors have none of their own
        return None
    return key


def _claim(view: _View, taken: list[_View]) -> tuple[str, int]:
    """Whose storage a view shares, and how many of its elements no view before it holds.

    Two disjoint slices of one storage share nothing. Where their spans cross, elements are marked one
    by one: slices of columns cross without meeting.
    """
    size = math.prod(length for _, length in view.layout)
    for other in taken:
        if (other.start, other.layout) == (view.start, view.layout):
            return other.storage, 0
    crossing = [other for other in taken if other.start < view.end and view.start < other.end]
    if not crossing:
        return view.storage, size

    import torch

    low = min(other.start for other in (view, *crossing))
    high = max(other.end for other in (view, *crossing))
    marks = torch.zeros(high - low, dtype=torch.bool, device="cpu")

    def marked(of: _View) -> torch.Tensor:
        strides, sizes = zip(*of.layout, strict=True)
        return marks.as_strided(sizes, strides, of.start - low)

    owner = None
    for other in crossing:
        marked(other).fill_(True)
        if owner is None and bool(marked(view).any()):
            owner = other.storage
    return owner or view.storage, size - int(marked(view).sum())
