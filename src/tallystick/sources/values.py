"""Reading values where a relation depends on them: of live tensors, and of files in blocks of constant size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from tallystick.errors import BadInput
from tallystick.sources.files import open_regular
from tallystick.sources.safetensors import Header

if TYPE_CHECKING:
    import torch

BLOCK = 1 << 20  # bytes of each tensor in memory at once
SAMPLE = 4096  # bytes that tell most tensors apart


class _Stored(NamedTuple):
    """Where a tensor's bytes lie."""

    path: Path
    start: int  # in the file
    length: int
    kind: tuple[str, tuple[int, ...]]  # dtype and shape


class StoredValues:
    """The values in safetensors files."""

    def __init__(self, files: Iterable[tuple[Path, Header]]) -> None:
        self._files = tuple(files)

    @cached_property
    def _tensors(self) -> dict[str, _Stored]:
        return {
            name: _Stored(path, header.data + start, end - start, (dtype, shape))
            for path, header in self._files
            for name, dtype, shape, start, end in header.tensors
        }

    def relation(self, one: str, other: str) -> str:
        """``copied`` where two tensors hold the same bytes, ``untied`` where not, ``unknown`` where one is not stored."""
        first, second = self._tensors.get(one), self._tensors.get(other)
        if first is None or second is None:
            return "unknown"
        return "copied" if first.kind == second.kind and _equal(first, second) else "untied"

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Names of matrices that hold the same bytes, apart from those filled with one value."""
        alike: dict[tuple[object, bytes], list[str]] = {}
        for name, stored in self._tensors.items():
            _, shape = stored.kind
            if len(shape) < 2 or not stored.length:  # norms and biases are equal by the hundred, and nobody minds
                continue
            sample = next(_blocks(stored, SAMPLE))
            if len(set(sample)) > 1:
                alike.setdefault((stored.kind, sample), []).append(name)
        for names in alike.values():
            yield from self._equal_among(names)

    def _equal_among(self, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Groups of equal tensors among those whose samples agree."""
        while names:
            first, *rest = names
            same = [name for name in rest if _equal(self._tensors[first], self._tensors[name])]
            if same:
                yield (first, *same)
            names = [name for name in rest if name not in same]


def _equal(one: _Stored, other: _Stored) -> bool:
    if one.length != other.length:
        return False
    return all(left == right for left, right in zip(_blocks(one, BLOCK), _blocks(other, BLOCK), strict=True))


def _blocks(stored: _Stored, size: int) -> Iterator[bytes]:
    file, _ = open_regular(stored.path)
    with file:
        file.seek(stored.start)
        left = stored.length
        while left:
            block = file.read(min(size, left))
            if not block:
                raise BadInput(f"{stored.path} became shorter while it was read")
            left -= len(block)
            yield block


class LiveValues:
    """The values of a live module's tensors."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], matrices: Iterable[tuple[str, str]]) -> None:
        self._tensors = WeakValueDictionary(tensors)  # a ledger that is kept must not keep a model's memory
        self._matrices = tuple(matrices)  # pairs that people expect to be one: embedding and head

    def relation(self, one: str, other: str) -> str:
        """``copied`` where two tensors hold equal values, transposed or not; ``unknown`` where they hold none."""
        import torch

        first, second = self._tensors.get(one), self._tensors.get(other)
        if first is None or second is None or first.is_meta or second.is_meta or not first.numel():
            return "unknown"
        if first.shape != second.shape and first.shape == second.shape[::-1]:
            second = second.t()
        if first.shape != second.shape or first.dtype != second.dtype:
            return "untied"
        try:
            return "copied" if torch.equal(first.detach(), second.detach().to(first.device)) else "untied"
        except (RuntimeError, NotImplementedError):  # sharded and quantised tensors whose values cannot be read here
            return "unknown"

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Embedding and head where they are equal, or differ, though nobody said that they should be one."""
        yield from self._matrices
