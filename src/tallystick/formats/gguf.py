"""Read the header of GGUF files (llama.cpp), versions 2 and 3, in either byte order.

The header is read from start to end in pieces. Of the metadata, strings and numbers are kept;
arrays are skipped, since a tokenizer's are longer than the rest of the header. Each length is
checked against the file size before it is used.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from io import BufferedReader
from operator import attrgetter
from sys import getsizeof
from typing import Any, Literal, NamedTuple

from tallystick.core.budget import current
from tallystick.core.dtypes import BITS, BLOCKS, Block
from tallystick.errors import BadInput, quoted
from tallystick.files.local import OpenFile, opened, read_all_of
from tallystick.files.remote import Location, NotThere, at_once
from tallystick.formats.gguf_names import buffers_among, experts_used, role_of, tied_output
from tallystick.formats.gguf_types import LIST, SCALARS, TENSOR_TYPES, TEXT, UINT32
from tallystick.formats.weights_file import Header, StoredTensor, WeightsFile, check_shape

KIND = "gguf"
MAGIC = b"GGUF"
VERSIONS = (2, 3)
LONGEST_NAME = 1 << 16
LONGEST_KEPT = 1 << 12  # bytes of a string kept from the metadata; longer ones, such as chat templates, are skipped

_MOST_DIMENSIONS = 4  # ggml's limit
_ALIGNMENT_KEY = "general.alignment"
_LEAST_TENSOR, _LEAST_KEY = 24, 13  # least bytes in the file of a tensor's entry and of a key
_KEY, _TENSOR = 150, 500  # bytes that Python takes for a metadata key and a tensor, without their texts
_ALIGNMENT = 32  # default alignment of the tensor data
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


class _File(NamedTuple):
    """Metadata of one file, without arrays, and its tensors."""

    metadata: dict[str, Any]
    header: Header
    big: bool = False  # big-endian


def sniff(file: OpenFile) -> bool:
    """Return whether a file begins with GGUF's magic number."""
    return file.start.startswith(MAGIC)


def read(file: OpenFile) -> WeightsFile:
    """Read the tensors of a file, or of all parts if it is split.

    Raises:
        BadInput: if a file is broken, or a part is missing in its folder.
    """
    path = file.path
    parts = _parts(file)
    metadata = parts[0][1].metadata
    tensors = [tensor for _, file in parts for tensor in file.header.tensors]
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise BadInput(f"{path}: two tensors have the same name", code="overlap")
    names = [tensor.name for tensor in tensors]
    files = [(part, file.header) for part, file in parts]
    if tied := tied_output(metadata, names):
        files[0][1].metadata.update(tied)
    architecture = metadata.get("general.architecture")
    return WeightsFile(
        KIND,
        files,
        buffers=buffers_among(names),
        role=role_of,
        experts_used=experts_used(metadata),
        architecture=architecture if isinstance(architecture, str) and architecture.isprintable() else None,
        own_names=True,
        notes=_notes(metadata, parts),
    )


def _parts(file: OpenFile) -> list[tuple[Location, _File]]:
    """Read a file, or all parts of the split file that its name belongs to."""
    path = file.path
    named = _PART.fullmatch(path.name)
    if named is None:
        return [(path, _read(file))]
    count = int(named[3])
    parts = [path.with_name(f"{named[1]}-{number:05}-of-{named[3]}.gguf") for number in range(1, count + 1)]

    def part(place: Location) -> _File | None:
        if place.name == path.name:
            return _read(file)
        try:
            with opened(place) as other:
                return _read(other)
        except NotThere:
            return None

    found = list(zip(parts, at_once(part, parts), strict=True))
    absent = [place.name for place, one in found if one is None]
    if absent or not parts:
        raise BadInput(
            f"{path} is one of {count} parts, of which {len(absent)} are missing from its folder:"
            f" {', '.join(map(quoted, absent[:3]))}",
            code="incomplete",
        )
    return [(place, one) for place, one in found if one is not None]


def _notes(metadata: dict[str, Any], parts: Sequence[tuple[Location, _File]]) -> tuple[str, ...]:
    notes = []
    if any(file.big for _, file in parts):
        notes.append("its numbers are big-endian: llama.cpp reads it only on big-endian machines")
    if metadata.get("general.type") == "adapter":
        notes.append("an adapter without its base model")
    claimed = metadata.get("split.count")
    if isinstance(claimed, int) and claimed > max(1, len(parts)):
        notes.append(f"this is only one of {claimed} parts: its name does not match the pattern of split files")
    return tuple(notes)


class _Reader:
    """Sequential reader of a header; it never reads or skips past the end of the file."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self._file, self._size = file, size
        self.position = 0
        self.order: Literal["little", "big"] = "little"
        self._budget = current()

    def take(self, length: int, what: str) -> bytes:
        self._check(length, what)
        return read_all_of(self._file, length)

    def skip(self, length: int, what: str) -> None:
        self._check(length, what)
        self._file.seek(length, 1)

    def _check(self, length: int, what: str) -> None:
        self.position += length
        if self.position > self._size:
            raise BadInput(
                f"{what} would end at byte {self.position:,}, but the file has {self._size:,}: it is truncated or"
                " broken",
                code="truncated",
            )

    def number(self, width: int, what: str) -> int:
        return int.from_bytes(self.take(width, what), self.order)

    def text(self, what: str, *, most: int = LONGEST_NAME) -> str:
        length = self.number(8, what)
        if length > most:
            raise BadInput(f"{what} has {length:,} bytes, more than {most:,}", code="too-large")
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise BadInput(f"{what} is not UTF-8", code="malformed") from None

    def value(self, kind: int, what: str) -> Any:
        """Return a number or string; None for an array, and for a string too long to keep."""
        if kind in SCALARS:
            scalar = struct.Struct(("<" if self.order == "little" else ">") + SCALARS[kind])
            return scalar.unpack(self.take(scalar.size, what))[0]
        if kind == TEXT:
            length = self.number(8, what)
            if length > LONGEST_KEPT:
                self.skip(length, what)
                return None
            return self.take(length, what).decode(errors="replace")
        if kind == LIST:
            self._skip_list(what)
            return None
        raise BadInput(f"{what} has the unknown type {kind}", code="unsupported")

    def _skip_list(self, what: str) -> None:
        kind, count = self.number(4, what), self.number(8, what)
        if kind in SCALARS:
            self.skip(struct.calcsize("<" + SCALARS[kind]) * count, what)
        elif kind == TEXT:
            self._budget.step(count)  # the largest tokenizers have a million strings, including merges
            for _ in range(count):
                self.skip(self.number(8, what), what)
        else:
            raise BadInput(f"{what} is a list of type {kind}, neither text nor numbers", code="malformed")


def _read(file: OpenFile) -> _File:
    if not sniff(file):
        raise BadInput(f"{file.path} is not a GGUF file: it begins with {quoted(file.start[:4])}", code="malformed")
    try:
        return _read_header(_Reader(file.stream, file.size), file.size)
    except BadInput as error:
        raise BadInput(f"{file.path}: {error}", code=error.code) from None


def _read_header(reader: _Reader, size: int) -> _File:
    reader.skip(len(MAGIC), "the header")
    version = reader.number(4, "the version")
    if not version & 0xFFFF:
        reader.order = "big"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in VERSIONS:
        old = ": convert it again, llama.cpp no longer reads it" if version == 1 else ""
        raise BadInput(f"it has GGUF version {version}, expected 2 or 3{old}", code="unsupported")
    count, keys = reader.number(8, "the count of tensors"), reader.number(8, "the count of keys")
    if _LEAST_TENSOR * count + _LEAST_KEY * keys > size:
        raise BadInput(
            f"it claims {count:,} tensors and {keys:,} keys, too many for a file of {size:,} bytes", code="truncated"
        )
    budget = current()
    metadata: dict[str, Any] = {}
    seen: set[str] = set()
    for _ in range(keys):
        key = reader.text("a key of the metadata")
        if key in seen:
            raise BadInput(f"it has the key {quoted(key)} twice", code="malformed")
        seen.add(key)
        kind = reader.number(4, f"the type of {quoted(key)}")
        value = reader.value(kind, f"the value of {quoted(key)}")
        if key == _ALIGNMENT_KEY and kind != UINT32:
            raise BadInput(
                f"its {key} has the type {kind}, expected {UINT32}: an unsigned 32-bit number", code="malformed"
            )
        budget.step(5)
        if value is not None:
            budget.keep(_KEY + getsizeof(key) + getsizeof(value), "its metadata")
            metadata[key] = value
    alignment = metadata.get(_ALIGNMENT_KEY, _ALIGNMENT)
    if alignment < 1 or alignment & (alignment - 1):
        raise BadInput(f"its general.alignment is {quoted(alignment)}, expected a power of two", code="malformed")
    tensors = []
    for _ in range(count):  # the count is not trusted: each tensor is read before memory for the next is taken
        budget.step(10)
        tensors.append(tensor := _tensor(reader, alignment))
        budget.keep(_TENSOR + getsizeof(tensor.name), "its tensors")
    budget.read(reader.position)
    data = -(-reader.position // alignment) * alignment
    tensors.sort(key=attrgetter("start", "end"))
    filled = 0
    for tensor in tensors:
        if tensor.start < filled:
            raise BadInput(f"the tensor {quoted(tensor.name)} overlaps the one before it", code="overlap")
        filled = tensor.end
    if data + filled > size and tensors:
        raise BadInput(
            f"its tensors end at byte {data + filled:,}, but the file has {size:,}: it is truncated", code="truncated"
        )
    return _File(metadata, Header(tensors, {}, data), reader.order == "big")


def _tensor(reader: _Reader, alignment: int) -> StoredTensor:
    """Read one tensor's entry; the file lists its sizes from the innermost to the outermost."""
    name = reader.text("a tensor's name")
    what = f"the tensor {quoted(name)}"
    dimensions = reader.number(4, what)
    if dimensions > _MOST_DIMENSIONS:
        raise BadInput(
            f"{what} has {dimensions} dimensions, more than the {_MOST_DIMENSIONS} of ggml", code="too-large"
        )
    sizes = [reader.number(8, what) for _ in range(dimensions)]
    shape = tuple(reversed(sizes))
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"{what} has {error}", code=error.code) from None
    number = reader.number(4, what)
    dtype = TENSOR_TYPES.get(number)
    if dtype is None:
        raise BadInput(f"{what} has the unknown ggml type {number}", code="unsupported")
    block = BLOCKS.get(dtype) or Block(1, BITS[dtype] // 8)
    row = sizes[0] if dimensions else 1
    if row % block.elements:
        raise BadInput(
            f"{what} has rows of {row:,} elements, but {dtype} packs {block.elements} together", code="malformed"
        )
    start = reader.number(8, what)
    if start % alignment:
        raise BadInput(f"{what} begins at byte {start:,} of the data, not a multiple of {alignment}", code="malformed")
    return StoredTensor(name, dtype, shape, start, start + math.prod(shape) // block.elements * block.bytes)
