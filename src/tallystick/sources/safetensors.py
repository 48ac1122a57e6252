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
import sys
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from operator import itemgetter
from typing import BinaryIO, NamedTuple

from tallystick.budget import current
from tallystick.dtypes import BITS
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.sources.files import open_regular, read_all_of, refuse_pointer
from tallystick.sources.remote import Location

LENGTH_BYTES = 8
ALIGNMENT = 8  # the format's own library starts the tensors' bytes at a multiple of it
LARGEST_HEADER = 100_000_000  # the limit of the format's own library
LARGEST_TENSOR = 2**63 - 1  # elements
MOST_DIMENSIONS = 64  # as many as numpy has; torch's own kernels stop there too
LONGEST_NAME = 1 << 16  # characters, as GGUF allows bytes; the format's own library has no limit
LONGEST_ENTRY = 1 << 20  # characters of one tensor, spaces included
LONGEST_TEXT = 1 << 23  # characters of one text in the metadata

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
_PIECE = 1 << 20  # characters that are read at once
_MOST_LAYOUTS = 4096  # whose dtype and shape are looked up by their text

# Bytes that Python takes: for a tensor without its name, for a size, for a text of the metadata in the dictionary.
_TENSOR, _SIZE_BYTES, _PAIR = 180, 32, 120
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
        header = _parsed(_decoder(file, length), length, size - LENGTH_BYTES - length, where=str(path))
    return header._replace(data=LENGTH_BYTES + length)


def parse_header(text: str, data_bytes: int, *, where: str) -> Header:
    """Check the text of a header that `data_bytes` of tensors follow; `where` is what messages call the file."""
    return _parsed(StringIO(text).read, len(text), data_bytes, where=where)


def _parsed(read: Callable[[int], str], length: int, data_bytes: int, *, where: str) -> Header:
    try:
        current().read(length)
        header = _scan(_Text(read))
        _check_layout(header.tensors, data_bytes)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    return header


def _decoder(file: BinaryIO, length: int) -> Callable[[int], str]:
    """What reads the next characters of a header of `length` bytes, as many as are asked for at most."""
    decoder, done = getincrementaldecoder("utf-8")(), 0

    def read(most: int) -> str:
        nonlocal done
        begun = len(decoder.getstate()[0])  # of a character whose other bytes come now
        content = read_all_of(file, min(most, length - done))
        try:
            text = decoder.decode(content, final=done + len(content) == length)
        except UnicodeDecodeError as error:
            raise BadInput(f"the header is not UTF-8 at its byte {done - begun + error.start}") from None
        done += len(content)
        return text

    return read


class _Text:
    """The text of a header, a piece at a time: what is behind is let go, so that one wide character widens one piece."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self.behind = 0  # characters that were let go
        self.piece = read(_PIECE)

    def more(self, position: int, most: int = LONGEST_ENTRY) -> bool:
        """Let go of what is before a position, and read on; False where the text ends.

        Raises:
            BadInput: where more than `most` characters would be held, as no entry needs.
        """
        rest = len(self.piece) - position
        if rest > most:
            raise BadInput(
                f"the header's entry at character {self.behind + position} has more than {most:,} characters"
            )
        following = self._read(min(max(_PIECE, rest), most + 1 - rest))
        self.piece = self.piece[position:] + following
        self.behind += position
        return bool(following)

    def unexpected(self, position: int, expected: str) -> BadInput:
        """What is wrong at a position."""
        text = self.piece[position : position + 120]
        found = shown(text, most=130) if text else "its end"
        return BadInput(
            f"the header is malformed at character {self.behind + position}: expected {expected}, found {found}"
        )


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


def _scan(text: _Text) -> Header:
    """All entries of a header's text: tensors, and the one ``__metadata__``."""
    tensors: list[StoredTensor] = []
    metadata: dict[str, str] | None = None
    layouts = _Layouts()
    position, after, last, counted = 1, ",", 0, 0
    if not text.piece.startswith("{"):
        raise text.unexpected(0, "a { at its start")
    if empty := _EMPTY.match(text.piece):
        position, after = empty.end(), "}"
    piece, plain = text.piece, _is_plain(text.piece)
    while after == ",":
        entry = _USUAL.match(piece, position) or _ENTRY.match(piece, position)
        if entry is None:
            if metadata is None and (start := _NAMED.match(piece, position)) and _string(start[1]) == _METADATA:
                metadata, position, after = _metadata(text, start.end())
            else:
                counted = _take(tensors, counted)
                if not text.more(position):
                    raise text.unexpected(0, _WANTED)
                position = 0
            piece, plain = text.piece, _is_plain(text.piece)
            continue
        token, dtype, shape, begin, end, after = entry.groups()
        if dtype is None or shape is None or begin is None:
            raise text.unexpected(position, _WANTED)
        name = token[1:-1] if plain else _string(token)
        if name == _METADATA or len(name) > LONGEST_NAME:
            raise _refused_name(name)
        layout = layouts.get((dtype, shape)) or layouts.add(name, dtype, shape)
        first = last if (first := int(begin)) == last else first  # most begin where one ends: one object for both
        last = int(end)
        if layout[2] != (last - first) * 8:
            raise BadInput(
                f"tensor {quoted(name)} of shape {layout[1]} and dtype {layout[0]} needs {layout[2] / 8:,.12g}"
                f" bytes, its data_offsets [{first}, {last}] span {last - first:,}"
            )
        tensors.append(StoredTensor(name, layout[0], layout[1], first, last))
        position = entry.end()
    _take(tensors, counted)
    _check_end(text, position)
    if len(set(map(itemgetter(0), tensors))) < len(tensors):
        (name, _), *_ = Counter(tensor.name for tensor in tensors).most_common(1)
        raise BadInput(f"the header has the tensor {quoted(name)} twice")
    return Header(tensors, metadata or {})


class _Layouts(dict[tuple[str, str], tuple[str, tuple[int, ...], int]]):
    """Dtype, shape and bits by their texts: the few that a model's many tensors share."""

    def add(self, name: str, dtype: str, shape: str) -> tuple[str, tuple[int, ...], int]:
        """Read a layout that the tensor `name` is the first to have."""
        if len(self) == _MOST_LAYOUTS:  # as no model has
            self.clear()
        budget = current()
        budget.step(10)
        layout = self[dtype, shape] = _layout(name, dtype, shape)
        budget.keep(_SIZE_BYTES * (len(layout[1]) + 2), "its tensors' shapes")
        return layout


def _take(tensors: list[StoredTensor], counted: int) -> int:
    """Take what all tensors but the first `counted` need from the budget of the source; how many there are."""
    budget, found = current(), tensors[counted:]
    budget.step(5 * len(found) + 10)
    budget.keep(_TENSOR * len(found) + sum(map(sys.getsizeof, map(itemgetter(0), found))), "its tensors")
    return len(tensors)


def _refused_name(name: str) -> BadInput:
    if name == _METADATA:
        return BadInput(f"the header's {_METADATA} holds more than text")
    return BadInput(f"the header names a tensor by {len(name):,} characters, more than {LONGEST_NAME:,}")


def _check_end(text: _Text, position: int) -> None:
    """Nothing but space may follow the header's end: the format pads with spaces."""
    while True:
        if text.piece[position:].strip(" \t\r\n"):
            raise text.unexpected(position, "nothing after the header's end")
        if not text.more(len(text.piece)):
            return
        position = 0


def _is_plain(piece: str) -> bool:
    """Whether no string in a piece needs a look of its own."""
    return piece.isascii() and "\\" not in piece and "\x7f" not in piece


def _metadata(text: _Text, position: int) -> tuple[dict[str, str], int, str]:
    """The texts of the ``__metadata__`` that begins at a position, where in the piece it ends, and what stands after it."""
    budget = current()
    found: dict[str, str] = {}
    while True:
        while pair := _TEXT.match(text.piece, position):
            key, value = _string(pair[1]), _string(pair[2], printable=False)
            budget.step()
            budget.keep(sys.getsizeof(key) + sys.getsizeof(value) + _PAIR, "its metadata")
            found[key] = value
            position = pair.end()
        if end := _END.match(text.piece, position):
            return found, end.end(), end[1]
        if not text.more(position, LONGEST_TEXT):
            raise text.unexpected(0, '"key": "text" in __metadata__')
        position = 0


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


def _check_layout(tensors: list[StoredTensor], data_bytes: int) -> None:
    """The tensors must fill the bytes after the header exactly, so that no byte is hidden or shared."""
    if _misplaced(tensors):  # in another order than that of their bytes, as the format allows
        # By start, then end: an empty tensor before what follows it. One key for both would take memory for each.
        tensors.sort(key=itemgetter(4))
        tensors.sort(key=itemgetter(3))
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
