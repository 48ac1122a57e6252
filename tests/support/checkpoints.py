"""Safetensors files written byte by byte, sound ones and broken ones.

Their data is a hole in the file: a checkpoint of half a gigabyte takes some kilobytes of disk.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BYTES = {
    "F64": 8,
    "I64": 8,
    "F32": 4,
    "I32": 4,
    "F16": 2,
    "BF16": 2,
    "U8": 1,
    "I8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F8_E8M0": 1,
}

Shapes = Mapping[str, Sequence[int]]


def header_of(shapes: Shapes, *, dtype: str = "F32", dtypes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a header says of tensors laid one after the other; `dtypes` are those of some names."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        word = (dtypes or {}).get(name, dtype)
        start, end = end, end + math.prod(shape) * BYTES[word]
        header[name] = {"dtype": word, "shape": list(shape), "data_offsets": [start, end]}
    return header


def data_bytes(header: Mapping[str, Any]) -> int:
    """How many bytes of data a header asks for."""
    return max((told["data_offsets"][1] for name, told in header.items() if name != "__metadata__"), default=0)


def write_raw(path: Path, header: str | bytes | Mapping[str, Any], data: int = 0, *, length: int | None = None) -> Path:
    """A file with just this header and so many bytes of zeros; `length` is what it claims the
    header to be.
    """
    if isinstance(header, Mapping):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode("utf-8", "surrogatepass")
    with path.open("wb") as file:
        file.write((len(header) if length is None else length).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + data)
    return path


def write(
    path: Path,
    shapes: Shapes,
    *,
    dtype: str = "F32",
    dtypes: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """A sound file of these tensors."""
    header = header_of(shapes, dtype=dtype, dtypes=dtypes)
    size = data_bytes(header)
    return write_raw(path, {"__metadata__": metadata, **header} if metadata is not None else header, size)


def write_sharded(folder: Path, *shards: Shapes, weight_map: Mapping[str, Any] | None = None) -> Path:
    """Shards and their index, whose path it gives; `weight_map` changes or adds to what the index
    says.
    """
    placed: dict[str, Any] = {}
    for number, shapes in enumerate(shards, start=1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write(folder / name, shapes, metadata={"format": "pt"})
        placed.update(dict.fromkeys(shapes, name))
    index = folder / "model.safetensors.index.json"
    size = sum(data_bytes(header_of(shapes)) for shapes in shards)
    index.write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": {**placed, **(weight_map or {})}}))
    return index


def write_config(folder: Path, values: Mapping[str, Any]) -> Path:
    """The config.json of a folder."""
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return path


def gpt2_published(*, layers: int = 12, width: int = 768, vocabulary: int = 50_257, positions: int = 1024) -> Shapes:
    """GPT-2 as its file is published: no prefix, no head, and a causal mask in each layer."""
    block = {
        "ln_1.weight": (width,), "ln_1.bias": (width,),
        "attn.bias": (1, 1, positions, positions),
        "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
        "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
        "ln_2.weight": (width,), "ln_2.bias": (width,),
        "mlp.c_fc.weight": (width, 4 * width), "mlp.c_fc.bias": (4 * width,),
        "mlp.c_proj.weight": (4 * width, width), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    return {
        "wte.weight": (vocabulary, width),
        "wpe.weight": (positions, width),
        **{f"h.{layer}.{name}": shape for layer in range(layers) for name, shape in block.items()},
        "ln_f.weight": (width,),
        "ln_f.bias": (width,),
    }
