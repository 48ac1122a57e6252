"""Safetensors files drawn at random, sound ones and changed ones, and the two readers of them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import torch  # noqa: F401  # which the library imports as it opens its first file
from safetensors import safe_open

from differential import Pair
from tallystick.core.dtypes import BITS
from tallystick.formats.safetensors import read_header
from tallystick.formats.safetensors_json import DTYPES

_NAMES = [
    "w", "model.layers.0.w", "h.{}.w", "", " ", " a", "é.重み.😀", 'q"\\', "a\nb", "\0", "\x1b[2J", "\x7f", "\x9b", "\xa0", "\u2028", "\ufeff",
    "__metadata__ ", "dtype", "shape", "data_offsets", "n" * 300,
]  # fmt: skip
_EXTRAS = [
    "null", "true", "0", "-0", "-1", "1.5e3", "1e-999", "1e308", "1e309", "123456789012345678901234567890", '""', '"\\u0000\\ud83d\\ude00"', "[]",
    "{}", "[ 1 , [ ] ]", '{"dtype":{"shape":[]}}', "[[[[[]]]]]", "NaN", "01", "1.", '"\\ud800"', "[1,]", "{,}", "'a'", "[" * 130 + "]" * 130,
]  # fmt: skip
_PIECES = [
    '"', "{", "}", "[", "]", ",", ":", " ", "\n", "\\", "0", "1", "9", "-", ".", "e", "\0", "\x1f", "\x7f", "é", "😀", "null", "true", "4294967296",
    "18446744073709551615", "18446744073709551616", "F32", "F4", "\\u0000", "\\ud800", '"x":1,', '"__metadata__":{},', '"__metadata__":null,',
    '"dtype":"U8",', '"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},',
]  # fmt: skip


def draw_file(draw: random.Random) -> bytes:
    """A whole file; in most of them something is unusual or wrong."""
    entries, end = [], 0
    for _ in range(draw.randint(0, 4)):
        entry, end = _entry(draw, end)
        entries.append(entry)
    if draw.random() < 0.4:
        entries.insert(draw.randint(0, len(entries)), _metadata(draw))
    if draw.random() < 0.2:
        draw.shuffle(entries)
    if entries and draw.random() < 0.1:
        entries.insert(draw.randint(0, len(entries)), draw.choice(entries))
    space = draw.choice(["", "", "", " ", "\n\t\r "])
    text = space + "{" + f"{space},{space}".join(entries) + space + "}" + draw.choice(["", " ", "    ", "\n", "\0"])
    while draw.random() < 0.35:
        text = _changed(draw, text)
    header = text.encode("utf-8", "surrogatepass")
    if draw.random() < 0.03 and header:
        place = draw.randrange(len(header))
        header = header[:place] + draw.randbytes(1) + header[place + 1 :]
    length = max(0, len(header) + draw.choice([0] * 40 + [1, -1, 8, 2**40]))
    content = length.to_bytes(8, "little") + header + bytes(max(0, end + draw.choice([0] * 40 + [1, -1])))
    return content[: draw.randrange(len(content))] if draw.random() < 0.01 else content


def _entry(draw: random.Random, start: int) -> tuple[str, int]:
    word = draw.choice([*DTYPES, "F32", "BF16", "U8"])
    shape = [draw.choice([0, 1, 2, 3, 4, 8]) for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 70]))]
    if draw.random() < 0.03:
        shape += [draw.choice([0, 2**31, 2**63, 2**64 - 1]) for _ in range(draw.randint(1, 3))]
    size = -(-math.prod(shape) * BITS[DTYPES[word]] // 8)
    end = start + (size if size < 1 << 20 else 0)
    fields = {
        "dtype": json.dumps(word) if draw.random() < 0.95 else f'{{"{word}" : null}}',
        "shape": json.dumps(shape),
        "data_offsets": f"[{start},{end}]" if draw.random() < 0.9 else f"[ {start} , {end} ]",
    }
    names = list(fields)
    if draw.random() < 0.2:
        draw.shuffle(names)
    if draw.random() < 0.03:
        return f"{_name(draw)}:[{','.join(fields[name] for name in names)}]", end
    written = [f'"{name}":{fields[name]}' for name in names]
    while draw.random() < 0.15:
        extra = draw.choice([*_EXTRAS[:14], draw.choice(_EXTRAS)])
        written.insert(draw.randint(0, len(written)), f"{_name(draw)}:{extra}")
    return f"{_name(draw)}:{{{','.join(written)}}}", end


def _metadata(draw: random.Random) -> str:
    if draw.random() < 0.15:
        return '"__metadata__":' + draw.choice(["null", "[]", '""', "0", '{"a":null}', '{"a":1}', " null "])
    pairs = [f"{_name(draw)}:{_name(draw)}" for _ in range(draw.randint(0, 3))]
    return f'"__metadata__":{{{",".join(pairs)}}}'


def _name(draw: random.Random) -> str:
    name = draw.choice(_NAMES) + draw.choice(["", "", str(draw.randint(0, 9))])
    return json.dumps(name, ensure_ascii=draw.random() < 0.5)


def _changed(draw: random.Random, text: str) -> str:
    place = draw.randrange(len(text) + 1)
    match draw.randrange(4):
        case 0:
            return text[:place] + draw.choice(_PIECES) + text[place:]
        case 1:
            return text[:place] + text[place + draw.randint(1, 6) :]
        case 2:
            return text[:place] + draw.choice(_PIECES) + text[place + 1 :]
        case _:
            start = draw.randrange(len(text) + 1)
            return text[:place] + text[start : start + draw.randint(1, 60)] + text[place:]


def by_library(path: Path) -> Any:
    """Names, shapes, dtypes and metadata as the format's own library reads them."""
    with safe_open(path, "pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        tensors = {name: (tuple(one.get_shape()), DTYPES[one.get_dtype()]) for name, one in slices.items()}
        return tensors, file.metadata() or {}


def by_us(path: Path) -> Any:
    """The same as we read them."""
    header = read_header(path)
    return {tensor.name: (tensor.shape, tensor.dtype) for tensor in header.tensors}, header.metadata


PAIR = Pair("a.safetensors", draw_file, by_us, by_library)
