"""Lazily read tensors in files: memory-mapped whole, or read a few rows at a time.

A mapping is private: the file's pages are the tensor's memory until something writes to them,
and writes never reach the file. Rows are read into a buffer instead of a mapping, because
mapped pages count as used memory until the system reclaims them.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.files.local import open_regular
from tallystick.formats.shards import headers_of
from tallystick.formats.weights_file import StoredTensor

BLOCK = 1 << 22  # bytes of a tensor read at once


class Held(NamedTuple):
    """A stored tensor, with two ways to read it.

    `whole` returns all of it, mapped if it is in a file. `blocks` yields (index of the first row,
    rows); each block is valid only until the next one.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    whole: Callable[[], Tensor]
    blocks: Callable[[], Iterable[tuple[int, Tensor]]]


def in_memory(tensor: Tensor) -> Held:
    """Return a tensor in memory as a `Held`."""
    return made(tensor.dtype, tuple(tensor.shape), lambda: tensor)


def made(dtype: torch.dtype, shape: tuple[int, ...], make: Callable[[], Tensor]) -> Held:
    """Return a `Held` whose tensor `make` computes when it is read."""
    return Held(dtype, shape, make, lambda: [(0, make())])


def held_by(checkpoint: Path) -> dict[str, Held]:
    """Return the tensors of a safetensors file, or of an index's shards, by name.

    Aliases in a file's ``__metadata__``, as of a tied tensor stored once, are included.
    """
    found: dict[str, Held] = {}
    aliases: dict[str, str] = {}
    for path, header in headers_of(checkpoint):
        mapped = mapping(path)
        for one in header.tensors:
            found[one.name] = in_file(path, mapped, one, header.data + one.start)
        aliases |= header.metadata
    return found | {alias: found[name] for alias, name in aliases.items() if name in found and alias not in found}


def mapping(path: Path) -> Tensor:
    """Return a file's bytes as a tensor, privately memory-mapped."""
    file, size = open_regular(path)
    file.close()
    return torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)


def in_file(path: Path, mapped: Tensor, one: StoredTensor, start: int) -> Held:
    """Return the tensor at a byte of a mapped file.

    Args:
        path: path of the file, from which blocks of rows are read.
        mapped: the file's bytes, see `mapping`.
        one: name, dtype, shape and byte range of the tensor.
        start: byte of the file at which its data begins.

    Raises:
        BadInput: if this torch does not have the dtype.
    """
    dtype = getattr(torch, one.dtype, None)
    if dtype is None:
        raise BadInput(
            f"{path}: tensor {one.name} has the dtype {one.dtype}, which this torch lacks", code="unsupported"
        )

    def whole() -> Tensor:
        flat = mapped[start : start + one.end - one.start]
        if start % dtype.itemsize:  # not aligned: a view is impossible
            flat = flat.clone()
        return flat.view(dtype).view(one.shape)

    return Held(dtype, one.shape, whole, partial(_rows, path, start, dtype, one.shape))


def raw(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous CPU tensor; valid only while the tensor lives."""
    if not tensor.nbytes:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr())).cast("B")


def _rows(path: Path, start: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Iterator[tuple[int, Tensor]]:
    rows, *row = shape or (1,)
    size = math.prod(row) * dtype.itemsize
    if not rows or not size:
        return
    some = min(max(1, BLOCK // size), rows)
    # An mmap goes back to the system when freed; the allocator might keep a hole per tensor.
    buffer = mmap.mmap(-1, some * size)
    block = torch.frombuffer(buffer, dtype=dtype).view(some, *row)
    file, _ = open_regular(path)
    with file:
        file.seek(start)
        for first in range(0, rows, some):
            count = min(some, rows - first)
            if file.readinto(memoryview(buffer)[: count * size]) != count * size:
                raise BadInput(f"{path} shrank while it was read", code="changed")
            yield first, block[:count] if shape else block[0]
