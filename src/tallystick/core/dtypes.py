"""Bytes per element of each dtype: torch's, ggml's blocks, and other packed formats."""

from __future__ import annotations

from typing import NamedTuple

# Bits of one element, by torch's name.
BITS = {
    "bool": 8, "uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32,
    "int64": 64, "uint64": 64, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64,
    "complex64": 64, "complex128": 128, "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e8m0fnu": 8,
    "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
    "complex32": 32, "qint8": 8, "quint8": 8, "qint32": 32, "float4_e2m1fn": 4,
    "float4_e2m1fn_x2": 8, "bits8": 8, "bits16": 16, "bits1x8": 8, "bits2x4": 8, "bits4x2": 8, "quint4x2": 4, "quint2x4": 2,
}  # fmt: skip


class Block(NamedTuple):
    """A block of quantised elements with its scales, as ggml stores it."""

    elements: int
    bytes: int


# From the block structs in ggml's ggml-common.h of August 2026. gguf 0.19 lists all but q2_0 in
# GGML_QUANT_SIZES.
BLOCKS = {
    "q1_0": Block(128, 18), "q2_0": Block(64, 18),
    "q4_0": Block(32, 18), "q4_1": Block(32, 20), "q5_0": Block(32, 22), "q5_1": Block(32, 24),
    "q8_0": Block(32, 34), "q8_1": Block(32, 40),
    "q2_k": Block(256, 84), "q3_k": Block(256, 110), "q4_k": Block(256, 144), "q5_k": Block(256, 176),
    "q6_k": Block(256, 210), "q8_k": Block(256, 292),
    "iq1_s": Block(256, 50), "iq1_m": Block(256, 56), "iq2_xxs": Block(256, 66), "iq2_xs": Block(256, 74),
    "iq2_s": Block(256, 82), "iq3_xxs": Block(256, 98), "iq3_s": Block(256, 110), "iq4_nl": Block(32, 18),
    "iq4_xs": Block(256, 136),
    "tq1_0": Block(256, 54), "tq2_0": Block(256, 66), "mxfp4": Block(32, 17), "nvfp4": Block(64, 36),
}  # fmt: skip

# Bits of one packed value; several share a byte, and their scales are stored elsewhere.
NARROW = {**{f"{sign}int{bits}": bits for sign in ("", "u") for bits in range(1, 8)}, "nf4": 4, "fp4": 4}


def size_in_bytes(elements: int, dtype: str) -> int:
    """Return the size of a tensor in bytes, rounded up to whole bytes.

    Args:
        elements: its number of elements.
        dtype: a key of `BITS`, `BLOCKS` or `NARROW`.
    """
    block = BLOCKS.get(dtype) or Block(8, BITS.get(dtype) or NARROW[dtype])
    return -(-elements * block.bytes // block.elements)
