"""Scan the JSON of a safetensors header; nothing is built except its tensors and metadata.

All that the safetensors library accepts is read as it reads it, including extra fields and odd
names. Regular expressions take less than half the time of `json.loads` with the same checks. They
know the position of an error, and never nest.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from itertools import accumulate
from operator import itemgetter, mul
from typing import NamedTuple

from tallystick.core.budget import current
from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.formats.json_scan import SPACE, STRING, Scan, string_of
from tallystick.formats.weights_file import MOST_DIMENSIONS, Header, StoredTensor

_LARGEST_SIZE = 2**64 - 1  # most for a size, an offset, and the bits of a tensor
LONGEST_NAME = 1 << 16  # characters; GGUF allows as many bytes, the safetensors library has no limit
LONGEST_ENTRY = 1 << 20  # characters of one tensor's entry, with whitespace
LONGEST_TEXT = 1 << 23  # characters of one metadata text


# The format's dtypes -> torch's names.
DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn", "F4": "float4_e2m1fn",
}  # fmt: skip

# Repeated quantifiers are possessive (*+), so no header can make the scan backtrack.
_SIZE = r"(?:0|[1-9][0-9]{0,19}+)"  # \d would match digits of every script
_LIST = rf"\[({SPACE}(?:{_SIZE}{SPACE}(?:,{SPACE}{_SIZE}{SPACE})*+)?+)\]"
_OFFSETS = rf"\[{SPACE}({_SIZE}){SPACE},{SPACE}({_SIZE}){SPACE}\]{SPACE}"
_FIELDS = (
    rf'"dtype"{SPACE}:{SPACE}({STRING}){SPACE}',
    rf'"shape"{SPACE}:{SPACE}{_LIST}{SPACE}',
    rf'"data_offsets"{SPACE}:{SPACE}{_OFFSETS}',
)
_FIELD = rf"(?:{'|'.join(_FIELDS)})(?:,{SPACE}(?!\}})|(?=\}}))"
_NAME = rf"{SPACE}({STRING}){SPACE}:{SPACE}\{{{SPACE}"
_AFTER = rf"\}}{SPACE}([,}}])"
# An entry as the safetensors library or Python's `json` writes it; nothing in another form.
_USUAL = re.compile(
    r' ?"([^"\\\x00-\x1f]*+)": ?\{("dtype": ?"[A-Z0-9_]*+", ?"shape": ?\[[0-9, ]*+\]), ?'
    rf'"data_offsets": ?\[({_SIZE}), ?({_SIZE})\]\}}([,}}])|'
)
_LAYOUT = re.compile(rf'"dtype": ?({STRING}), ?"shape": ?{_LIST}')
_ENTRY = re.compile(rf"{_NAME}(?:{_FIELD}){{3}}{_AFTER}")  # fields in any order
_NAMED = re.compile(_NAME)
_TEXT = re.compile(rf"({STRING}){SPACE}:{SPACE}({STRING}){SPACE}(?:,{SPACE}(?!\}})|(?=\}}))")
_END = re.compile(_AFTER)
_SHAPE, _PLACE, _WORD = (re.compile(one) for one in (_LIST + SPACE, _OFFSETS, rf"({STRING}){SPACE}"))
METADATA = "__metadata__"
_PIECE = 1 << 20  # characters read at a time
_MOST_LAYOUTS = 4096  # distinct pairs of dtype and shape that are cached

# Bytes that Python takes: for a tensor without its name, a size, and a metadata entry.
_TENSOR, _SIZE_BYTES, _PAIR = 180, 32, 120
_BLANKS = " \t\r\n"
_WANTED = '"name": {"dtype": "…", "shape": […], "data_offsets": [start, end]}'


class Text:
    """Text of a header in pieces. Read pieces are dropped; a wide character widens only one."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self.behind = 0  # characters dropped
        self.piece = read(_PIECE)

    def more(self, position: int, most: int = LONGEST_ENTRY) -> bool:
        """Drop the text before a position, and read the next piece; return False at the end.

        Args:
            position: first character to keep.
            most: most characters to hold.

        Raises:
            BadInput: if more characters would be held.
        """
        rest = len(self.piece) - position
        if rest > most:
            raise BadInput(
                f"the header's entry at character {self.behind + position} has more than {most:,} characters",
                code="too-large",
            )
        following = self._read(min(max(_PIECE, rest), most + 1 - rest))
        self.piece = self.piece[position:] + following
        self.behind += position
        return bool(following)

    def unexpected(self, position: int, expected: str) -> BadInput:
        """Return the error for unexpected text at a position."""
        text = self.piece[position : position + 120]
        found = shown(text, most=130) if text else "its end"
        return BadInput(
            f"the header is malformed at character {self.behind + position}: expected {expected}, found {found}",
            code="malformed",
        )


class _Layout(NamedTuple):
    """Dtype, shape and bits, shared by many tensors."""

    dtype: str
    shape: tuple[int, ...]
    bits: int  # of all elements; -1 if too many


class _Entries:
    """Collects the entries of a header."""

    def __init__(self) -> None:
        self.metadata: dict[str, str] | None = None
        self.budget = current()
        self._tensors: list[StoredTensor] = []
        self._layouts: dict[str, _Layout] = {}  # the few distinct layouts of a model, by their text
        self._wrong: list[int] = []  # positions of tensors whose bytes do not match their shape
        self._last = self._counted = 0

    def add_usual(self, piece: str, position: int) -> tuple[int, str]:
        """Add the entries from a position on as far as their form is the usual one.

        Returns:
            the end of the last one, and the mark after it.
        """
        layouts, add = self._layouts, self._add
        for entry in _USUAL.finditer(piece, position):
            name, text, start, end, after = entry.groups()
            if name is None:
                break
            layout = layouts.get(text)
            if layout is None:
                fields = _LAYOUT.fullmatch(text)
                if fields is None:
                    break
                layout = self._layout(name, text, *fields.groups())
            add(name, layout, start, end)
            if after == "}":
                return entry.end(), after
        return entry.start(), ","

    def add(self, name: str, dtype: str, shape: str, start: str, end: str) -> None:
        """Add a tensor, with its fields as they are in the header's text."""
        text = f"{dtype} {shape}"
        self._add(name, self._layouts.get(text) or self._layout(name, text, dtype, shape), start, end)

    def _layout(self, name: str, text: str, dtype: str, shape: str) -> _Layout:
        """Return the layout of a tensor, which later ones with the same text share."""
        if len(self._layouts) == _MOST_LAYOUTS:  # no real model has that many
            self._layouts.clear()
        self.budget.step(10)
        layout = self._layouts[text] = _layout(name, dtype, shape)
        self.budget.keep(_SIZE_BYTES * (len(layout.shape) + 2), "its tensors' shapes")
        return layout

    def _add(self, name: str, layout: _Layout, start: str, end: str) -> None:
        dtype, shape, bits = layout
        if name == METADATA:
            raise BadInput(f"the header's {METADATA} holds more than text", code="malformed")
        if len(name) > LONGEST_NAME:
            raise BadInput(
                f"the header names a tensor by {len(name):,} characters, more than {LONGEST_NAME:,}", code="too-large"
            )
        first = int(start)
        first = self._last if first == self._last else first  # most begin at another's end: share the int
        last = self._last = int(end)
        if bits != (last - first) * 8:
            self._wrong.append(len(self._tensors))
        if last > _LARGEST_SIZE or first > _LARGEST_SIZE:
            raise BadInput(f"tensor {quoted(name)} has data_offsets beyond 2^64", code="too-large")
        self._tensors.append(StoredTensor(name, dtype, shape, first, last))

    def take(self) -> None:
        """Take the tensors added since the last call from the budget."""
        found = self._tensors[self._counted :]
        self.budget.step(5 * len(found) + 10)
        self.budget.keep(_TENSOR * len(found) + sum(map(sys.getsizeof, map(itemgetter(0), found))), "its tensors")
        self._counted = len(self._tensors)

    def whole(self) -> Header:
        """Return the complete header.

        Of entries with the same name only the last counts, as in the safetensors library.

        Raises:
            BadInput: if a tensor's bytes do not match its shape and dtype.
        """
        self.take()
        tensors, wrong = self._tensors, self._wrong
        if len(set(map(itemgetter(0), tensors))) < len(tensors):
            last = {tensor.name: place for place, tensor in enumerate(tensors)}
            wrong = sorted(set(wrong) & set(last.values()))
        if wrong:
            raise _misfit(tensors[wrong[0]])
        if wrong is not self._wrong:
            tensors = [tensors[place] for place in sorted(last.values())]
        return Header(tensors, self.metadata or {})


def scan_header(text: Text) -> Header:
    """Scan the whole text of a header: its tensors and its ``__metadata__``.

    Raises:
        BadInput: if it breaks the format.
    """
    entries = _Entries()
    scan = _begun(text)
    after, position = "}" if scan.sees("}") else ",", scan.position
    piece = text.piece
    while after == ",":
        position, after = entries.add_usual(piece, position)
        if after != ",":
            break
        entry = _ENTRY.match(piece, position)
        if entry and None not in (found := entry.groups()):
            token, dtype, shape, start, end, after = found
            entries.add(string_of(token), dtype, shape, start, end)
            position = entry.end()
            continue
        named = _NAMED.match(piece, position)
        if named and entries.metadata is None and string_of(named[1]) == METADATA:
            entries.metadata, position, after = _metadata(text, named.end())
        else:
            entries.take()
            short = len(piece) - position < LONGEST_ENTRY  # the entry may continue in the next piece
            more = short and text.more(position)
            position = 0 if short else position
            if not more:
                position, after = _unusual(text, position, entries)
        piece = text.piece
    while True:
        if text.piece[position:].strip(_BLANKS):  # the format pads with spaces
            raise text.unexpected(position, "nothing after the header's end")
        if not text.more(position := len(text.piece)):
            break
        position = 0
    return entries.whole()


def _begun(text: Text) -> Scan:
    """Return a scan positioned after the opening brace of the header."""
    while not text.piece.strip(_BLANKS) and text.more(len(text.piece)):
        pass
    scan = Scan(text.piece, behind=text.behind)
    scan.space()
    scan.expect("{", "a { at its start")
    return scan


def _metadata(text: Text, position: int) -> tuple[dict[str, str], int, str]:
    """Read ``__metadata__`` at a position; return its texts, its end, and the mark after it."""
    budget, held = current(), 0
    found: dict[str, str] = {}  # a repeated key keeps its last value
    while True:
        while pair := _TEXT.match(text.piece, position):
            key, value = string_of(pair[1]), string_of(pair[2])
            budget.step()
            budget.keep(sys.getsizeof(key) + sys.getsizeof(value) + _PAIR, "its metadata")
            found[key] = value
            position = pair.end()
        if end := _END.match(text.piece, position):
            budget.keep(-held, "its metadata")
            return found, end.end(), end[1]
        before, rest = held, len(text.piece) - position
        # A long text is held several times, with four bytes for each character: in the piece, in
        # the match, and without its quotes.
        held = 16 * min(2 * rest, LONGEST_TEXT) if rest > _PIECE // 2 else 0
        budget.keep(held - before, "its metadata")
        if not text.more(position, LONGEST_TEXT):
            raise text.unexpected(0, '"key": "text" in __metadata__')
        position = 0


def _unusual(text: Text, position: int, entries: _Entries) -> tuple[int, str]:
    """Add an entry of unusual form; return its end in the piece, and the mark after it."""
    scan = Scan(text.piece, position, behind=text.behind)
    scan.space()
    try:
        name = scan.key(_WANTED)
        if name != METADATA:
            entries.add(name, *_fields(scan, name))
        elif entries.metadata is None:
            entries.metadata = {}
            scan.expect("null", '"key": "text" in __metadata__')
        else:
            raise BadInput(f"the header has {METADATA} twice", code="malformed")
        after = "," if scan.goes_on("}") else "}"
    except BadInput:
        if scan.is_cut and len(scan.text) - position >= LONGEST_ENTRY:
            text.more(position)  # raises if the entry is too long
        raise
    return scan.position, after


def _fields(scan: Scan, name: str) -> tuple[str, str, str, str]:
    """Return dtype, shape and offsets of a tensor as text.

    Accept every form that the safetensors library accepts, with extra fields.
    """
    if scan.sees("["):  # a list of only the three values
        dtype = _dtype(scan)
        scan.expect(",", _WANTED)
        shape = _matched(scan, _SHAPE)[0]
        scan.expect(",", _WANTED)
        start, end = _matched(scan, _PLACE)
        scan.expect("]", _WANTED)
        return dtype, shape, start, end
    scan.expect("{", _WANTED)
    fields: dict[str, tuple[str, ...]] = {}
    more = not scan.sees("}")
    while more:
        key = scan.key(_WANTED)
        if key in fields:
            raise BadInput(f"tensor {quoted(name)} has the field {key} twice", code="malformed")
        if key == "dtype":
            fields[key] = (_dtype(scan),)
        elif key == "shape":
            fields[key] = _matched(scan, _SHAPE)
        elif key == "data_offsets":
            fields[key] = _matched(scan, _PLACE)
        else:
            scan.skip(inside=2)
        more = scan.goes_on("}")
    absent = [key for key in ("dtype", "shape", "data_offsets") if key not in fields]
    if absent:
        raise BadInput(f"tensor {quoted(name)} has no {' and no '.join(absent)}: expected {_WANTED}", code="malformed")
    start, end = fields["data_offsets"]
    return fields["dtype"][0], fields["shape"][0], start, end


def _dtype(scan: Scan) -> str:
    """Read the string of a dtype, with quotes; the library also accepts ``{"F32": null}``."""
    if not scan.sees("{"):
        return _matched(scan, _WORD)[0]
    word = _matched(scan, _WORD)[0]
    scan.expect(":", _WANTED)
    scan.expect("null", _WANTED)
    scan.expect("}", _WANTED)
    return word


def _matched(scan: Scan, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Match a pattern at the current position, advance, and return its groups."""
    found = pattern.match(scan.text, scan.position)
    if found is None:
        raise scan.unexpected(_WANTED)
    scan.position = found.end()
    return found.groups()


def _layout(name: str, dtype_token: str, shape_text: str) -> _Layout:
    """Parse the dtype and shape of a header's text, and compute the bits."""
    word = string_of(dtype_token)
    if word not in DTYPES:
        raise BadInput(
            f"tensor {quoted(name)} has the unknown dtype {quoted(word)}{nearest(word, DTYPES)}", code="unsupported"
        )
    if shape_text.count(",") >= MOST_DIMENSIONS:
        raise BadInput(f"tensor {quoted(name)} has more than {MOST_DIMENSIONS:,} dimensions", code="too-large")
    shape = tuple(int(size) for size in shape_text.split(",") if size.strip())
    if any(size > _LARGEST_SIZE for size in shape):
        raise BadInput(f"tensor {quoted(name)} has a size of 2^64 or more", code="too-large")
    bits = BITS[DTYPES[word]] * math.prod(shape)
    if any(product > _LARGEST_SIZE for product in (bits, *accumulate(shape, mul))):
        bits = -1  # a later zero does not excuse a product that is too large, also in the library
    return _Layout(DTYPES[word], shape, bits)


def _misfit(tensor: StoredTensor) -> BadInput:
    """Return the error for a tensor whose bytes do not match its shape and dtype."""
    elements = math.prod(tensor.shape)
    shape = quoted(tensor.shape)
    if any(product > _LARGEST_SIZE for product in (elements * BITS[tensor.dtype], *accumulate(tensor.shape, mul))):
        return BadInput(f"tensor {quoted(tensor.name)} has the shape {shape}: more than 2^64 bits", code="too-large")
    return BadInput(
        f"tensor {quoted(tensor.name)} of shape {shape} and dtype {tensor.dtype} needs"
        f" {elements * BITS[tensor.dtype] / 8:,.12g} bytes, its data_offsets [{tensor.start}, {tensor.end}] span"
        f" {tensor.end - tensor.start:,}",
        code="malformed",
    )
