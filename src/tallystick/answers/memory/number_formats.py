"""Bytes of a tensor in a number format, scales included."""

from __future__ import annotations

import math
from typing import NamedTuple

from tallystick.answers.memory.gguf_rules import ALIASES, FILE_TYPES, MATRIX
from tallystick.core.dtypes import BITS, BLOCKS, size_in_bytes
from tallystick.core.entries import Entry
from tallystick.errors import BadInput, nearest, quoted, shown

# Quantisers quantise the matrices of the blocks, but not embedding, head, norms and router.
QUANTISED_ROLES = ("attention", "mlp", "experts")


class Packed(NamedTuple):
    """A quantised format, in which groups of a row's elements share a scale."""

    bits: int  # per element
    per_group: float  # bits of a group's scale and, if any, its zero point
    group: int | None  # elements of a row in a group; None is the whole row
    source: str
    roles: tuple[str, ...] = QUANTISED_ROLES
    per_column: int = 0  # bits of each input, once for a matrix


PACKED = {
    "int8": Packed(8, 32 + 8, None, "torchao Int8WeightOnlyConfig: a float32 scale and an int8 zero point a row"),
    "fp8": Packed(8, 32, None, "torchao Float8WeightOnlyConfig: a float32 scale a row"),
    "int4": Packed(4, 16 + 16, 128, "torchao Int4WeightOnlyConfig: a bfloat16 scale and zero point for 128 elements"),
    "nf4": Packed(4, 32, 64, "bitsandbytes Linear4bit: a float32 scale for 64 elements"),
    "nf4-dq": Packed(4, 8 + 32 / 256, 64, "Dettmers et al. 2023, QLoRA, section 3: an 8-bit scale for 64 elements, and"
                     " a float32 one for 256 of those"),
    "mxfp4": Packed(4, 8, 32, "OCP Microscaling Formats v1.0, section 5.2: an 8-bit exponent for 32 elements; as in"
                    " gpt-oss", ("mlp", "experts")),
    "awq": Packed(4, 16 + 4, 128, "AutoAWQ WQLinear_GEMM: a float16 scale and a 4-bit zero point for 128 elements"),
    **{
        f"gptq-{bits}bit-{group}g": Packed(
            bits, 16 + bits, group, f"AutoGPTQ QuantLinear: a float16 scale and a {bits}-bit zero point for {group}"
            " elements, and an int32 group number of each input", per_column=32
        )
        for bits, group in ((4, 128), (4, 32), (3, 128), (8, 128))
    },
}  # fmt: skip


FLOATS = ("float32", "bfloat16", "float16")
WEIGHT_FORMATS = (*FLOATS, *PACKED, *FILE_TYPES)  # usual formats of weights; torch's other dtypes are known too
SHORT = {
    "fp32": "float32", "f32": "float32", "float": "float32", "fp16": "float16", "f16": "float16", "half": "float16",
    "bf16": "bfloat16", "gptq": "gptq-4bit-128g", **ALIASES,
}  # fmt: skip


def format_named(name: str) -> str:
    """Return torch's name of a number format.

    Args:
        name: a dtype's name, short or long, or a name in `PACKED` or `FILE_TYPES`.

    Raises:
        BadInput: for an unknown name.

    >>> format_named("bf16"), format_named("torch.float16"), format_named("nf4")
    ('bfloat16', 'float16', 'nf4')
    """
    found = _spelled_out(name)
    if found not in PACKED and found not in BITS and found not in FILE_TYPES:
        near = nearest(found, (*PACKED, *BITS, *FILE_TYPES, *SHORT)) or f"; known: {', '.join(WEIGHT_FORMATS)}"
        raise BadInput(
            f"unknown number format {quoted(name)}{near}; `tallystick dtypes` lists them", code="unknown-name"
        )
    return found


def _spelled_out(name: str) -> str:
    """Return the long spelling of a format's name, known or not."""
    if not isinstance(name, str):
        raise BadInput(f"a number format is {shown(name)}, expected a name such as bfloat16", code="bad-value")
    word = name.removeprefix("torch.").lower()
    return SHORT.get(word, word)


def bytes_of(entry: Entry, form: str | None) -> int:
    """Return the bytes of an entry's elements, times its copies, in a format; None is its own."""
    if form is not None and form not in PACKED:
        return size_in_bytes(entry.unique, form) * entry.copies
    if form is None or is_kept(entry, form) or len(entry.shape) < 2 or not entry.unique:
        return entry.bytes * entry.copies
    packed, row = PACKED[form], int(entry.shape[-1])
    groups = entry.unique // row * math.ceil(row / (packed.group or row))
    columns = math.prod(int(size) for size in (*entry.shape[:-2], row)) * packed.per_column
    return math.ceil((entry.unique * packed.bits + groups * packed.per_group + columns) / 8) * entry.copies


def is_kept(entry: Entry, form: str) -> bool:
    """Return whether a packed format leaves tensors of this role unquantised."""
    return form in PACKED and (entry.role not in PACKED[form].roles or entry.name.endswith("bias"))


class Cached(NamedTuple):
    """A quantised format of the KV cache."""

    bits: int
    group: int  # elements that share a scale and a zero point, both in the model's dtype
    source: str


_KIVI = "Liu et al. 2024, KIVI; transformers' QuantizedCache: a scale and a zero point, not quantised, for 64 elements"
CACHED = {"int8": Cached(8, 64, _KIVI), "int4": Cached(4, 64, _KIVI), "int2": Cached(2, 64, _KIVI)}
# Block formats in which llama.cpp keeps keys and values (common/arg.cpp, kv_cache_types).
BLOCK_CACHES = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
BLOCK_SOURCE = "llama.cpp, ggml/src/ggml-common.h: {bytes} B for {elements} elements, scales included"
CACHE_FORMATS = (*FLOATS, "fp8", *CACHED, *BLOCK_CACHES)


def cache_format_named(name: str) -> str:
    """Return the name of a KV-cache format; ``fp8`` is float8_e4m3fn.

    Raises:
        BadInput: for a format in which no cache is kept.
    """
    word = _spelled_out(name)
    if name in CACHED or word in BLOCK_CACHES:
        return word
    found = "float8_e4m3fn" if name == "fp8" else word
    if found not in BITS or not found.startswith(("float", "bfloat")):
        raise BadInput(
            f"{quoted(name)} is not a KV cache format; expected one of {', '.join(CACHE_FORMATS)}",
            code="unknown-name",
        )
    return found


def cache_bytes(elements: int, form: str, computed: str) -> int:
    """Return the bytes of cached elements with scales, for a model computing in `computed`."""
    if form not in CACHED:
        return size_in_bytes(elements, form)
    cached, width = CACHED[form], BITS[computed] // 8
    return math.ceil(elements * cached.bits / 8) + math.ceil(elements / cached.group) * 2 * width


def scales_of_tensors(tensors: int, form: str) -> int:
    """Return the bytes of one float32 scale per cached tensor, which 8-bit floats have."""
    return tensors * 4 if form.startswith("float8") else 0


def cache_source(form: str, otherwise: str) -> str:
    """Return the source of a cache format's size; `otherwise` for a dtype without scales."""
    if form in BLOCK_CACHES:
        return BLOCK_SOURCE.format(**BLOCKS[form]._asdict())
    return CACHED[form].source if form in CACHED else otherwise


class Format(NamedTuple):
    """A number format, for the list of them."""

    name: str
    bits: float  # of one element, its share of scales included, in rows of 4,096
    weights: bool  # whether weights can have it
    kv_cache: bool  # whether a KV cache can have it
    what: str


def known_formats() -> list[Format]:
    """Return the usual formats of weights and of KV caches."""
    row = 4096
    found = [Format(name, BITS[name], True, True, "torch dtype") for name in FLOATS]
    for name, packed in PACKED.items():
        bits = packed.bits + packed.per_group / (packed.group or row)
        cached = name in CACHE_FORMATS
        packs = "matrices of the blocks" if packed.roles == QUANTISED_ROLES else "matrices of MLPs and experts"
        found.append(Format(name, round(bits, 3), True, cached, f"{packs}; {packed.source}"))
    found += [
        Format(name, round(one.bits + 2 * 16 / one.group, 3), False, True, one.source)
        for name, one in CACHED.items()
        if name not in PACKED
    ]
    for name, base in FILE_TYPES.items():
        block = BLOCKS[base]
        what = f"llama-quantize: most matrices in {base}"
        what += ", by an importance matrix" if name.endswith(MATRIX) else ""
        found.append(Format(name, 8 * block.bytes / block.elements, True, name in BLOCK_CACHES, what))
    return found
