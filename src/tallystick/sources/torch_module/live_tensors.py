"""What a live tensor is made of: plain memory, the shard of a distributed one, the parts of a quantised one, or nothing yet."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """A tensor's shape as the model has it; a lazy one, which has none before the first forward pass, holds no element."""
    if is_lazy(tensor):
        return (0,)
    # DeepSpeed ZeRO-3 leaves an empty tensor on each rank and keeps the real shape beside it.
    return tuple(int(size) for size in getattr(tensor, "ds_shape", tensor.shape))


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether a parameter waits for the first forward pass to get its shape."""
    from torch.nn.parameter import is_lazy

    return bool(is_lazy(tensor))


def identity_of(tensor: torch.Tensor) -> Hashable:
    """What is equal for one Parameter alone. DeepSpeed ZeRO-3 numbers its Parameters, whichever object stands for one."""
    number = getattr(tensor, "ds_id", None)
    return id(tensor) if number is None else ("ds_id", number)


class PlainTensors(NamedTuple):
    """A tensor as the plain tensors inside it."""

    tensors: tuple[torch.Tensor, ...]
    layout: tuple[Any, ...] = ()  # how they make up the whole; () for a plain tensor, which is its own part


def parts_of(tensor: torch.Tensor) -> PlainTensors:
    """The plain tensors that hold a tensor's values in this process. Nothing is asked of any other process."""
    if is_sharded(tensor):
        layout: tuple[Any, ...] = (tensor.device_mesh, tensor.placements)
        inner = [tensor._local_tensor]  # to_local() may wait for other processes
    elif hasattr(tensor, "__tensor_flatten__"):  # how torch itself takes a quantised tensor apart
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
    """Whether this is torch's DTensor, by the names of its classes: asking isinstance would import torch.distributed."""
    return any(kind.__name__ == "DTensor" for kind in type(tensor).__mro__)


def packed_bytes(tensor: torch.Tensor) -> int | None:
    """Bytes of all the plain tensors inside a quantised one, scales included; None for any other."""
    if is_sharded(tensor) or not hasattr(tensor, "__tensor_flatten__"):
        return None
    return sum(int(part.nbytes) for part in parts_of(tensor).tensors)


def stand_in(shape: tuple[int, ...], dtype: torch.dtype, why: str) -> torch.Tensor:
    """A tensor that has a shape and no values, and says why: for one that cannot be had here as torch shows it."""
    import torch

    empty = torch.empty(shape, dtype=dtype, device="meta")
    empty.why_absent = why
    return empty


def is_freed(tensor: torch.Tensor) -> bool:
    """Whether a tensor's storage is too short for it: reading it would end the process, not raise."""
    try:
        size = tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):  # a sparse tensor has no storage of its own
        return False
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((length - 1) * stride for length, stride in steps)
    return bool(tensor.numel()) and size < (last + 1) * tensor.element_size()


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The plain tensor whose memory stands for a tensor's: the first of its parts that holds any."""
    filled: Iterator[torch.Tensor] = (part for part in parts_of(tensor).tensors if part.numel())
    return next(filled, tensor)
