"""Inspect a live tensor: plain, sharded, quantised, lazy or freed memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return a tensor's shape in the model; (0,) for a lazy one, which has no shape yet."""
    if is_lazy(tensor):
        return (0,)
    # DeepSpeed ZeRO-3 leaves an empty tensor on each rank, with the real shape in `ds_shape`.
    return tuple(int(size) for size in getattr(tensor, "ds_shape", tensor.shape))


def is_lazy(tensor: torch.Tensor) -> bool:
    """Return whether a parameter gets its shape only in the first forward pass."""
    from torch.nn.parameter import is_lazy

    return bool(is_lazy(tensor))


def identity_of(tensor: torch.Tensor) -> Hashable:
    """Return a key that is equal only for one Parameter.

    DeepSpeed ZeRO-3 numbers its Parameters; several objects may have one number.
    """
    number = getattr(tensor, "ds_id", None)
    return id(tensor) if number is None else ("ds_id", number)


class PlainTensors(NamedTuple):
    """A tensor as the plain tensors inside it."""

    tensors: tuple[torch.Tensor, ...]
    layout: tuple[Any, ...] = ()  # how the parts form the whole; () for a plain tensor


def parts_of(tensor: torch.Tensor) -> PlainTensors:
    """Return the plain tensors with a tensor's values in this process, without communication."""
    if is_sharded(tensor):
        layout: tuple[Any, ...] = (tensor.device_mesh, tensor.placements)
        inner = [tensor._local_tensor]  # to_local() may wait for other processes
    elif hasattr(tensor, "__tensor_flatten__"):  # torch's own protocol for tensor subclasses
        names, context = tensor.__tensor_flatten__()
        layout = (type(tensor), *names, context)
        inner = [getattr(tensor, name) for name in names]
    else:
        return PlainTensors((tensor,))
    parts = [parts_of(part) for part in inner]
    return PlainTensors(
        tuple(plain for part in parts for plain in part.tensors), (*layout, *(part.layout for part in parts))
    )


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is torch's DTensor.

    Class names are compared, because isinstance would import torch.distributed.
    """
    return any(kind.__name__ == "DTensor" for kind in type(tensor).__mro__)


def packed_bytes(tensor: torch.Tensor) -> int | None:
    """Return the bytes of all plain tensors in a quantised one, with scales; None for any other."""
    if is_sharded(tensor) or not hasattr(tensor, "__tensor_flatten__"):
        return None
    return sum(int(part.nbytes) for part in parts_of(tensor).tensors)


def stand_in(shape: tuple[int, ...], dtype: torch.dtype, why: str) -> torch.Tensor:
    """Return a tensor with a shape and no values.

    Args:
        shape: its shape.
        dtype: its dtype.
        why: the reason that there are no values.
    """
    import torch

    empty = torch.empty(shape, dtype=dtype, device="meta")
    empty.why_absent = why
    return empty


def is_freed(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's storage is too short: reading it would crash the process."""
    try:
        size = tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):  # a sparse tensor has no storage
        return False
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((length - 1) * stride for length, stride in steps)
    return bool(tensor.numel()) and size < (last + 1) * tensor.element_size()


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first plain part of a tensor that holds any elements, or the tensor itself."""
    filled: Iterator[torch.Tensor] = (part for part in parts_of(tensor).tensors if part.numel())
    return next(filled, tensor)
