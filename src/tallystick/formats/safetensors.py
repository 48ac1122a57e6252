"""Read and write safetensors headers: eight bytes of length, then JSON. No tensor is read.

The file is not trusted, so each claim is checked before it is used: the header's length against the
file, each tensor's bytes against its shape and dtype, and all tensors against the file, with no
gap and no overlap.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from operator import itemgetter
from typing import BinaryIO

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted
from tallystick.files.local import OpenFile, opened, read_all_of
from tallystick.files.remote import Location
from tallystick.formats.safetensors_json import DTYPES, METADATA, Text, scan_header
from tallystick.formats.weights_file import Header, StoredTensor, WeightsFile

KIND = "safetensors"
LENGTH_BYTES = 8
ALIGNMENT = 8  # the safetensors library starts the tensor data at a multiple of it
LARGEST_HEADER = 100_000_000  # limit of the safetensors library

_WORDS = {dtype: word for word, dtype in DTYPES.items()}


def sniff(file: OpenFile) -> bool:
    """Return whether a file begins with the length of a header that fits in it, and JSON."""
    fits = int.from_bytes(file.start[:LENGTH_BYTES], "little") <= min(LARGEST_HEADER, file.size - LENGTH_BYTES)
    return fits and file.start[LENGTH_BYTES:].lstrip(b" \t\r\n")[:1] == b"{"


def read(file: OpenFile) -> WeightsFile:
    """Read the tensors of a file from its header.

    Raises:
        BadInput: if the header breaks the format.
    """
    return WeightsFile(KIND, [(file.path, _header(file))])


def read_header(path: Location) -> Header:
    """Read only the header of a file.

    Raises:
        BadInput: if the header breaks the format.
    """
    with opened(path) as file:
        return _header(file)


def _header(file: OpenFile) -> Header:
    path, stream, size, _ = file
    first = stream.read(LENGTH_BYTES)
    length = int.from_bytes(first, "little")
    if len(first) < LENGTH_BYTES:
        raise BadInput(
            f"{path} is not a safetensors file: {size} bytes, too short for the header length", code="truncated"
        )
    if length > LARGEST_HEADER:
        raise BadInput(
            f"{path}: the header claims {length:,} bytes, more than the format's {LARGEST_HEADER:,}", code="too-large"
        )
    if length > size - LENGTH_BYTES:
        raise BadInput(
            f"{path} is truncated: its header claims {length:,} bytes, the file has {size:,}", code="truncated"
        )
    header = _parsed(_decoder(stream, length), length, size - LENGTH_BYTES - length, where=str(path))
    return header._replace(data=LENGTH_BYTES + length)


def parse_header(text: str, data_bytes: int, *, where: str) -> Header:
    """Parse and check the text of a header.

    Args:
        text: the JSON text.
        data_bytes: bytes of tensor data that follow it.
        where: name of the file in messages.

    Raises:
        BadInput: if the header breaks the format.
    """
    return _parsed(StringIO(text).read, len(text), data_bytes, where=where)


def _parsed(read: Callable[[int], str], length: int, data_bytes: int, *, where: str) -> Header:
    try:
        current().read(length)
        header = scan_header(Text(read))
        _check_layout(header.tensors, data_bytes)
    except BadInput as error:
        raise BadInput(f"{where}: {error}", code=error.code) from None
    return header


def _decoder(file: BinaryIO, length: int) -> Callable[[int], str]:
    """Return a function that reads up to `most` further characters of the header."""
    decoder, done = getincrementaldecoder("utf-8")(), 0

    def read(most: int) -> str:
        nonlocal done
        begun = len(decoder.getstate()[0])  # bytes of an incomplete character from the last piece
        content = read_all_of(file, min(most, length - done))
        try:
            text = decoder.decode(content, final=done + len(content) == length)
        except UnicodeDecodeError as error:
            raise BadInput(
                f"the header is not UTF-8 at its byte {done - begun + error.start}", code="malformed"
            ) from None
        done += len(content)
        return text

    return read


def header_bytes(tensors: Iterable[tuple[str, str, tuple[int, ...], int]], metadata: Mapping[str, str]) -> bytes:
    """Return the beginning of a file whose tensors follow one another.

    Args:
        tensors: name, dtype by torch's name, shape, and size in bytes of each.
        metadata: free text for ``__metadata__``.
    """
    header: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, dtype, shape, size in tensors:
        start, end = end, end + size
        header[name] = {"dtype": _WORDS[dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _check_layout(tensors: list[StoredTensor], data_bytes: int) -> None:
    """Check that the tensors fill the data exactly, so that no byte is hidden or shared."""
    found = _misplaced(tensors)
    if found:  # not in the order of their data, which the format allows
        # By start, then end: an empty tensor before the next one. Two sorts need less memory than a
        # key with both.
        tensors.sort(key=itemgetter(4))
        tensors.sort(key=itemgetter(3))
        found = _misplaced(tensors)
    if found:
        name, start, filled = found
        what = "overlaps the tensor before it" if start < filled else "leaves a gap before it"
        raise BadInput(
            f"tensor {quoted(name)} starts at byte {start:,} of the data and {what} (expected {filled:,})",
            code="overlap" if start < filled else "malformed",
        )
    filled = tensors[-1].end if tensors else 0
    if filled != data_bytes:
        what = "the file is truncated" if filled > data_bytes else "the file has bytes that no tensor holds"
        raise BadInput(
            f"{what}: the tensors end at byte {filled:,} of the data, which has {data_bytes:,}",
            code="truncated" if filled > data_bytes else "malformed",
        )


def _misplaced(tensors: Iterable[StoredTensor]) -> tuple[str, int, int] | None:
    """Return the first tensor that does not begin at the end of the previous one, or None.

    The result is its name, its start, and the expected start.
    """
    filled = 0
    for name, _, _, start, end in tensors:
        if start != filled:
            return name, start, filled
        filled = end
    return None
