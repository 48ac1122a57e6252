"""GGUF files drawn at random, sound ones and changed ones, and the two readers of them."""

from __future__ import annotations

import math
import random
import struct
import warnings
from pathlib import Path
from typing import Any

from gguf import GGUFReader
from gguf.constants import GGML_QUANT_SIZES

from differential import Pair
from tallystick.formats import read_weights
from tallystick.formats.gguf_types import SCALARS, TENSOR_TYPES

_NAMES = ["token_embd.weight", "blk.0.w", "a", "", "\x1b[2J", "größe", "x" * 70]
_BLOCKS = {int(kind): size for kind, size in GGML_QUANT_SIZES.items()} | {42: (64, 18)}


def draw_file(draw: random.Random) -> bytes:
    """A whole file; in many of them something is unusual or wrong."""
    order, version = draw.choice("<<>"), draw.choice([3, 3, 3, 3, 2, 2, 1, 4] if draw.random() < 0.2 else [3, 2])
    keys = [_key(draw, order, place) for place in range(draw.randint(0, 4))]
    alignment = 32
    if draw.random() < 0.2:
        alignment = draw.choice([1, 8, 32, 64, 128])
        kind, code = (4, "I") if draw.random() < 0.9 else (10, "Q")
        keys.append(_text("general.alignment", order) + struct.pack(f"{order}I{code}", kind, alignment))
    tensors, end = [], 0
    for place in range(draw.randint(0, 4)):
        kind = draw.choice([0, 1, 30, 0, 1, 30, 8, 42, *_BLOCKS])
        elements, size = _BLOCKS[kind]
        shape = [
            draw.choice([0, 1, 1, 2, 3]) * elements,
            *(draw.choice([0, 1, 2, 3, 5]) for _ in range(draw.randint(0, 3))),
        ]
        shape = [] if draw.random() < 0.05 and elements == 1 else shape
        name = draw.choice(_NAMES) + (str(place) if draw.random() < 0.95 else "")
        tensors.append(_text(name, order) + struct.pack(f"{order}I{len(shape)}QIQ", len(shape), *shape, kind, end))
        end += math.prod(shape) // elements * size
        end += -end % alignment
    header = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), len(keys)) + b"".join(keys + tensors)
    while draw.random() < 0.3:
        header = _changed(draw, header)
    content = header + bytes(-len(header) % alignment) + bytes(end)
    return content[: draw.randrange(4, len(content))] if draw.random() < 0.02 else content


def _key(draw: random.Random, order: str, place: int) -> bytes:
    name = draw.choice(["general.name", "llama.block_count", "a", ""]) + (str(place) if draw.random() < 0.95 else "")
    return _text(name, order) + _value(draw, order, 0)


def _value(draw: random.Random, order: str, deep: int) -> bytes:
    kind = draw.choice([*SCALARS, 8, 8, 8, 9, 9])
    if kind == 9:
        inner = draw.choice([*SCALARS, 8, 8, 8, 8, 9 if deep < 2 else 8])
        count = draw.randint(0, 3)
        items = [_value(draw, order, deep + 1)[4:] if inner == 9 else _one(draw, inner, order) for _ in range(count)]
        return struct.pack(order + "IIQ", 9, inner, count) + b"".join(items)
    return struct.pack(order + "I", kind) + _one(draw, kind, order)


def _one(draw: random.Random, kind: int, order: str) -> bytes:
    return _text(draw.choice(_NAMES), order) if kind == 8 else draw.randbytes(struct.calcsize("<" + SCALARS[kind]))


def _text(text: str, order: str) -> bytes:
    return struct.pack(order + "Q", len(text.encode())) + text.encode()


def _changed(draw: random.Random, content: bytes) -> bytes:
    place = draw.randrange(4, len(content))
    new = draw.choice([draw.randbytes(1), bytes(1), b"\xff", bytes([content[place] ^ 1 << draw.randrange(8)])])
    return content[:place] + new + content[place + 1 :]


def by_library(path: Path) -> Any:
    """Names, shapes, types and places as the format's own library reads them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = GGUFReader(path).tensors
    return {
        one.name: (
            tuple(reversed([int(size) for size in one.shape])),
            TENSOR_TYPES[int(one.tensor_type)],
            one.data_offset,
        )
        for one in tensors
    }


def by_us(path: Path) -> Any:
    """The same as we read them."""
    ((_, header),) = read_weights(path).files
    return {tensor.name: (tensor.shape, tensor.dtype, header.data + tensor.start) for tensor in header.tensors}


PAIR = Pair(
    "a.gguf",
    draw_file,
    by_us,
    by_library,
    we_refuse=(  # each of these ggml refuses too, which checks more than its Python library
        "is a list of type .*, neither text nor numbers",
        "would end at byte",  # a list or text that ends beyond the file is cut by the Python library
        "overlaps the one before it",
        "not a multiple of",
        "more than the 4 of ggml",
        "elements, and .* packs",
        "more than 2.63 elements",
        "its tensors end at byte",  # an empty one beyond the file's end
    ),
    # gguf 0.19 does not know the type 42, and packs no tensor without dimensions; ggml does.
    we_accept=(
        r"\(42\) is not a valid GGMLQuantizationType",
        "IndexError: tuple index out of range",
        "array is too big",  # NumPy, of an empty tensor: it multiplies the sizes that are not 0
    ),
)
