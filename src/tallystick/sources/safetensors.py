"""The header of a safetensors file: eight bytes of length, then JSON. The tensors themselves are never read here.

The file may come from anywhere, so each claim is checked before it is used: the header's length
against the file, each tensor's bytes against its shape and dtype, and all of them together against
the file, with no gap and no overlap. The JSON is scanned for the one form that a header may have,
not parsed as whatever it may be: nothing nests, and nothing is built beyond the tensors themselves.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from tallystick.dtypes import BITS
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.sources.files import open_regular, refuse_pointer
from tallystick.sources.remote import Location

LENGTH_BYTES = 8
ALIGNMENT = 8  # the format's own library starts the tensors' bytes at a multiple of it
LARGEST_HEADER = 100_000_000  # the limit of the format's own library
LARGEST_TENSOR = 2**63 - 1  # elements
MOST_DIMENSIONS = 64  # as many as numpy has; torch's own kernels stop there too

# The format's words for dtypes, and torch's.
DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn", "F4": "float4_e2m1fn",
}  # fmt: skip
_WORDS = {dtype: word for word, dtype in DTYPES.items()}

# Every quantifier that could be tried twice is possessive (*+): no header can make the scan backtrack.
_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_SIZE = r"(?:0|[1-9][0-9]{0,18}+)"  # \d would take every script's digits
_LIST = rf"\[({_SPACE}(?:{_SIZE}{_SPACE}(?:,{_SPACE}{_SIZE}{_SPACE})*+)?+)\]"
_FIELDS = (
    rf'"dtype"{_SPACE}:{_SPACE}({_STRING}){_SPACE}',
    rf'"shape"{_SPACE}:{_SPACE}{_LIST}{_SPACE}',
    rf'"data_offsets"{_SPACE}:{_SPACE}\[{_SPACE}({_SIZE}){_SPACE},{_SPACE}({_SIZE}){_SPACE}\]{_SPACE}',
)
_FIELD = rf"(?:{'|'.join(_FIELDS)})(?:,{_SPACE}(?!\}})|(?=\}}))"
_NAME = rf"{_SPACE}({_STRING}){_SPACE}:{_SPACE}\{{{_SPACE}"
_NAMED = re.compile(_NAME)
_AFTER = rf"\}}{_SPACE}([,}}])"
_USUAL = re.compile(_NAME + f",{_SPACE}".join(_FIELDS) + _AFTER)  # as the format's library writes it: sooner matched
_ENTRY = re.compile(rf"{_NAME}(?:{_FIELD}){{3}}{_AFTER}")  # in any order
_TEXT = re.compile(rf"({_STRING}){_SPACE}:{_SPACE}({_STRING}){_SPACE}(?:,{_SPACE}(?!\}})|(?=\}}))")
_END = re.compile(_AFTER)
_EMPTY = re.compile(rf"\{{{_SPACE}\}}{_SPACE}")
_METADATA = "__metadata__"
_WANTED = '"name": {"dtype": "…", "shape": […], "data_offsets": [start, end]}'


class StoredTensor(NamedTuple):
    """What a header says of one tensor; `start` and `end` are bytes after the header."""

    name: str
    dtype: str  # torch's word
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """A whole header: the tensors in the order of their bytes, and the free text beside them."""

    tensors: list[StoredTensor]
    metadata: dict[str, str]
    data: int = 0  # where in the file the tensors' bytes begin


def read_header(path: Location) -> Header:
    """Read and check the header of a safetensors file; what breaks the format raises `BadInput`."""
    file, size = open_regular(path)
    with file:
        first = file.read(LENGTH_BYTES)
        length = int.from_bytes(first, "little")
        refuse_pointer(path, first + file.read(16) if first == b"version " else b"")
        if len(first) < LENGTH_BYTES:
            raise BadInput(f"{path} is no safetensors file: {size} bytes, too short to hold a header's length")
        if length > LARGEST_HEADER:
            raise BadInput(f"{path}: the header claims {length:,} bytes, more than the format's {LARGEST_HEADER:,}")
        if length > size - LENGTH_BYTES:
            raise BadInput(f"{path} is truncated: its header claims {length:,} bytes, the file has {size:,}")
        content = file.read(length)
    try:
        header = parse_header(content.decode("utf-8"), size - LENGTH_BYTES - length, where=str(path))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: the header is not UTF-8 at its byte {error.start}") from None
    return header._replace(data=LENGTH_BYTES + length)


def parse_header(text: str, data_bytes: int, *, where: str) -> Header:
    """Check the text of a header that `data_bytes` of tensors follow; `where` is what messages call the file."""
    try:
        header = _scan(text)
        _check_layout(header.tensors, data_bytes)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    return header


def header_bytes(tensors: Iterable[tuple[str, str, tuple[int, ...], int]], metadata: Mapping[str, str]) -> bytes:
    """What a file begins with whose tensors follow one after the other.

    Args:
        tensors: name, dtype in torch's word, shape and bytes of each.
        metadata: free text beside them.
    """
    header: dict[str, object] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, dtype, shape, size in tensors:
        start, end = end, end + size
        header[name] = {"dtype": _WORDS[dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _scan(text: str) -> Header:
    """All entries of a header's text: tensors, and the one ``__metadata__``."""
    tensors: list[StoredTensor] = []
    metadata: dict[str, str] | None = None
    layouts: dict[tuple[str, str], tuple[str, tuple[int, ...], int]] = {}  # the few that a model's many tensors share
    position, after = 1, ","
    plain = text.isascii() and "\\" not in text and "\x7f" not in text  # no string needs a look of its own
    if not text.startswith("{"):
        raise _unexpected(text, 0, "a { at its start")
    if _EMPTY.fullmatch(text):
        return Header([], {})
    while after == ",":
        entry = _USUAL.match(text, position) or _ENTRY.match(text, position)
        if entry is None:
            if metadata is not None:
                raise _unexpected(text, position, _WANTED)
            metadata, position, after = _metadata(text, position)
            continue
        token, dtype, shape, start, end, after = entry.groups()
        if dtype is None or shape is None or start is None:
            raise _unexpected(text, position, _WANTED)
        name = token[1:-1] if plain else _string(token)
        if name == _METADATA:
            raise BadInput(f"the header's {_METADATA} holds more than text")
        layout = layouts.get((dtype, shape))
        if layout is None:
            layout = layouts[dtype, shape] = _layout(name, dtype, shape)
        first, last = int(start), int(end)
        if layout[2] != (last - first) * 8:
            raise BadInput(
                f"tensor {quoted(name)} of shape {layout[1]} and dtype {layout[0]} needs {layout[2] / 8:,.12g}"
                f" bytes, its data_offsets [{first}, {last}] span {last - first:,}"
            )
        tensors.append(StoredTensor(name, layout[0], layout[1], first, last))
        position = entry.end()
    if text[position:].strip(" \t\r\n"):  # the format pads with spaces
        raise _unexpected(text, position, "nothing after the header's end")
    if len(set(map(itemgetter(0), tensors))) < len(tensors):
        (name, _), *_ = Counter(tensor.name for tensor in tensors).most_common(1)
        raise BadInput(f"the header has the tensor {quoted(name)} twice")
    return Header(tensors, metadata or {})


def _metadata(text: str, position: int) -> tuple[dict[str, str], int, str]:
    """The ``__metadata__`` at a position, where it ends, and what stands after it."""
    start = _NAMED.match(text, position)
    if start is None or _string(start[1]) != _METADATA:
        raise _unexpected(text, position, _WANTED)
    found: dict[str, str] = {}
    position = start.end()
    while pair := _TEXT.match(text, position):
        found[_string(pair[1])] = _string(pair[2], printable=False)
        position = pair.end()
    end = _END.match(text, position)
    if end is None:
        raise _unexpected(text, position, '"key": "text" in __metadata__')
    return found, end.end(), end[1]


def _string(token: str, *, printable: bool = True) -> str:
    """A JSON string's value. Names must be printable: they end up on terminals."""
    value = token[1:-1]
    try:
        if "\\" in token:
            value = json.loads(token)
            value.encode()  # half of a surrogate pair, such as \ud800 alone, is no character
    except ValueError:
        raise BadInput(f"the header holds the malformed string {quoted(token)}") from None
    if printable and not value.isprintable():
        raise BadInput(f"the header names {shown(value)}, which holds characters that cannot be shown")
    return value


def _layout(name: str, dtype_token: str, shape_text: str) -> tuple[str, tuple[int, ...], int]:
    """The dtype, shape and bits that tensors of one kind have in common."""
    word = _string(dtype_token)
    if word not in DTYPES:
        raise BadInput(f"tensor {quoted(name)} has the unknown dtype {quoted(word)}{nearest(word, DTYPES)}")
    if shape_text.count(",") >= MOST_DIMENSIONS:
        raise BadInput(f"tensor {quoted(name)} has more than {MOST_DIMENSIONS} dimensions")
    shape = tuple(int(size) for size in shape_text.split(",") if size.strip())
    if math.prod(size or 1 for size in shape) > LARGEST_TENSOR:  # a zero does not excuse the sizes beside it
        raise BadInput(f"tensor {quoted(name)} has the shape {shape}: more than 2^63 elements")
    return DTYPES[word], shape, math.prod(shape) * BITS[DTYPES[word]]


def _unexpected(text: str, position: int, expected: str) -> BadInput:
    found = shown(text[position : position + 120], most=130) if position < len(text) else "its end"
    return BadInput(f"the header is malformed at character {position}: expected {expected}, found {found}")


def _check_layout(tensors: list[StoredTensor], data_bytes: int) -> None:
    """The tensors must fill the bytes after the header exactly, so that no byte is hidden or shared."""
    if _misplaced(tensors):  # in another order than that of their bytes, as the format allows
        tensors.sort(key=itemgetter(3, 4))  # by start, then end: an empty tensor before what follows it
    if found := _misplaced(tensors):
        name, start, filled = found
        what = "overlaps the tensor before it" if start < filled else "leaves a gap before it"
        raise BadInput(f"tensor {quoted(name)} starts at byte {start:,} of the data and {what} (expected {filled:,})")
    filled = tensors[-1].end if tensors else 0
    if filled != data_bytes:
        what = "the file is truncated" if filled > data_bytes else "the file has bytes that no tensor holds"
        raise BadInput(f"{what}: the tensors end at byte {filled:,} of the data, which has {data_bytes:,}")


def _misplaced(tensors: Iterable[StoredTensor]) -> tuple[str, int, int] | None:
    """The first tensor that does not begin where the one before it ends: its name, where it begins, and where it should."""
    filled = 0
    for name, _, _, start, end in tensors:
        if start != filled:
            return name, start, filled
        filled = end
    return None
