"""Compare tensor values in files in blocks of constant size, only when a relation needs it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from tallystick.core.evidence import Compared
from tallystick.errors import BadInput
from tallystick.files.local import open_regular
from tallystick.files.remote import Location
from tallystick.formats.weights_file import NOWHERE, Header

BLOCK = 1 << 20  # bytes of each tensor in memory at once
SAMPLE = 4096  # bytes; enough to distinguish most tensors
BEGINNING = 1 << 16  # bytes of a tensor in a file that is handed in piece by piece


class _Stored(NamedTuple):
    """The position of a tensor's bytes in a file."""

    path: Location
    start: int  # in the file
    length: int
    kind: tuple[str, tuple[int, ...]]  # dtype and shape


class StoredValues:
    """Lazy access to the tensor values in local files of weights."""

    registered = ""

    def __init__(self, files: Iterable[tuple[Location, Header]]) -> None:
        self._files = tuple(files)
        self.packed: Container[str] = ()  # names of quantised weights, whose scales are stored elsewhere
        self.pairs: Sequence[tuple[str, str]] = ()  # (embedding, head), usually expected to be tied
        self._known: dict[frozenset[str], bool] = {}  # compared pairs -> whether they are equal

    @cached_property
    def _tensors(self) -> dict[str, _Stored]:
        return {
            name: _Stored(path, start if start == NOWHERE else header.data + start, end - start, (dtype, shape))
            for path, header in self._files
            for name, dtype, shape, start, end in header.tensors
        }

    def holds(self, name: str) -> bool:
        """Return whether a file stores a tensor of that name."""
        return name in self._tensors

    def peek(self, name: str) -> bytes | None:
        """Return the bytes of a tensor of at most `SAMPLE` bytes.

        Return None if the tensor is larger, or not contiguous in the file.
        """
        stored = self._tensors.get(name)
        if stored is None or stored.start == NOWHERE or not 0 < stored.length <= SAMPLE:
            return None
        return bytes(next(_blocks(stored, SAMPLE)))

    def compare(self, one: str, other: str) -> Compared:
        """Return ``copied`` for equal bytes, ``untied`` for different ones, else ``unknown``."""
        first, second = self._tensors.get(one), self._tensors.get(other)
        if first is None or second is None:
            return Compared("unknown", f"no file holds {one if first is None else other}")
        if NOWHERE in (first.start, second.start):
            return Compared("unknown", f"{one if first.start == NOWHERE else other} is not stored contiguously")
        if one in self.packed or other in self.packed:
            return Compared(
                "unknown", f"{one if one in self.packed else other} is quantised, so its values are not compared"
            )
        if first.kind[0] != second.kind[0]:
            return Compared("untied", f"the dtypes are {first.kind[0]} and {second.kind[0]}")
        if first.kind[1] != second.kind[1]:
            return Compared("untied", f"the shapes are {first.kind[1]} and {second.kind[1]}")
        pair = frozenset((one, other))
        if pair not in self._known:
            self._known[pair] = self._equal(first, second)
        return Compared("copied" if self._known[pair] else "untied")

    def _equal(self, one: _Stored, other: _Stored) -> bool:
        return all(left == right for left, right in zip(_blocks(one, BLOCK), _blocks(other, BLOCK), strict=True))

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Yield groups of matrices with equal bytes, except constant ones.

        Then the pairs of embedding and head.
        """
        alike: dict[tuple[object, bytes], list[str]] = {}
        for name, stored in self._tensors.items():
            _, shape = stored.kind
            if len(shape) < 2 or not stored.length:  # equal norms and biases are common and harmless
                continue
            sample = bytes(next(_blocks(stored, SAMPLE)))
            if len(set(sample)) > 1:
                alike.setdefault((stored.kind, sample), []).append(name)
        for names in alike.values():
            if len(names) == 2:
                groups = [names] if self.compare(*names).relation == "copied" else []
            elif len(names) > 2:
                groups = [group for group in self._by_digest(names) if len(group) > 1]
            else:  # no other begins as it does
                continue
            yield from map(tuple, groups)
        yield from self.pairs

    def _by_digest(self, names: Iterable[str]) -> Iterable[list[str]]:
        """Group names whose tensors are equal by hash; each tensor is read once."""
        from hashlib import blake2b  # imported only if needed

        groups: dict[bytes, list[str]] = {}
        for name in names:
            digest = blake2b()
            for block in _blocks(self._tensors[name], BLOCK):
                digest.update(block)
            groups.setdefault(digest.digest(), []).append(name)
        self._known |= {frozenset(pair): True for group in groups.values() for pair in combinations(group, 2)}
        return groups.values()


class HandedValues(StoredValues):
    """The values of files that are handed in piece by piece: only their beginnings are compared."""

    def peek(self, name: str) -> None:
        """Return None: one piece for each of hundreds of tensors would be too many."""

    def compare(self, one: str, other: str) -> Compared:
        """Return ``untied`` if the beginnings differ; ``copied`` only if they are the whole."""
        found = super().compare(one, other)
        if found.relation == "copied" and self._tensors[one].length > BEGINNING:
            return Compared("unknown", f"their first {BEGINNING:,} bytes are equal, and the rest is not read")
        return found

    def _equal(self, one: _Stored, other: _Stored) -> bool:
        return _beginning(one) == _beginning(other)

    def duplicates(self) -> Iterator[tuple[str, ...]]:
        """Yield the pairs of embedding and head."""
        yield from self.pairs


class ValuesElsewhere:
    """The values of remote files: only headers are fetched, so all comparisons are unknown."""

    registered = ""

    def __init__(self, files: Iterable[tuple[Location, Header]]) -> None:
        self._names = frozenset(tensor.name for _, header in files for tensor in header.tensors)
        self.packed: Container[str] = ()  # unused; the same attributes as `StoredValues`
        self.pairs: Sequence[tuple[str, str]] = ()

    def holds(self, name: str) -> bool:
        """Return whether a file stores a tensor of that name."""
        return name in self._names

    def peek(self, name: str) -> None:
        """Return None: one request for each of hundreds of tensors would be too many."""

    def compare(self, one: str, other: str) -> Compared:
        """Return ``unknown``, always."""
        return Compared("unknown", "the values are remote: download the files to compare them")

    def duplicates(self) -> Sequence[tuple[str, str]]:
        """Return the pairs of embedding and head, whose values are unknown."""
        return self.pairs


def _beginning(stored: _Stored) -> bytes:
    return bytes(next(_blocks(stored, BEGINNING), b""))


def _blocks(stored: _Stored, size: int) -> Iterator[bytearray]:
    """Yield a tensor's bytes in blocks.

    All blocks reuse one buffer, so each is valid until the next.
    """
    file, _ = open_regular(stored.path)
    buffer = bytearray(min(size, stored.length))
    left = stored.length
    with file:
        file.seek(stored.start)
        while left:
            if len(buffer) > left:
                del buffer[left:]
            if file.readinto(buffer) != len(buffer):
                raise BadInput(f"{stored.path} shrank while it was read", code="changed")
            left -= len(buffer)
            yield buffer
