"""What a library stores for a matrix of so many outputs and inputs: tensors by name, dtype and shape, as `elementwise` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick.sources.quantized.packed_weight import is_size

E4M3, E2M1 = "float8_e4m3fn", "float4_e2m1fn"


class Unstated(Exception):
    """A config that does not say how many bytes a weight takes; its words say what is missing."""


class StoredPart(NamedTuple):
    """A tensor that is stored for a matrix; the first of them holds its values."""

    ending: str  # of its name, put for `weight`
    dtype: str
    shape: tuple[int, ...]


Layout = Callable[[int, int], list[StoredPart]]  # of a matrix of so many outputs and inputs


class Scheme(NamedTuple):
    """How matrices are stored."""

    dtype: str  # of a value
    layout: Layout


def fp8(shape: Callable[[int, int], tuple[int, ...]], scale: str = "float32", *others: StoredPart) -> Scheme:
    """A byte for each value and scales of some shape."""
    return Scheme(
        E4M3,
        lambda out, inputs: [
            StoredPart("weight", E4M3, (out, inputs)),
            StoredPart("weight_scale", scale, shape(out, inputs)),
            *others,
        ],
    )


def tiles(size: Any) -> Callable[[int, int], tuple[int, ...]]:
    """A scale for each tile of such a size, as a config states it."""
    if not isinstance(size, list | tuple) or len(size) != 2 or not all(map(is_size, size)):
        raise Unstated(f"its block size is {size!r}"[:80])
    return lambda out, inputs: (-(-out // size[0]), -(-inputs // size[1]))


def narrow_floats(
    group: int, *, of: str = "weight_packed", scale: str = "uint8", others: tuple[str, ...] = ()
) -> Scheme:
    """Two floats to a byte, with a scale for each group: an exponent for 32 (MX), a float8 for 16 (NV)."""
    return Scheme(
        E2M1,
        lambda out, inputs: [
            StoredPart(of, "uint8", (out, -(-inputs // 2))),
            StoredPart("weight_scale", scale, (out, -(-inputs // group))),
            *(StoredPart(name, "float32", (1,)) for name in others),
        ],
    )


def gptq(bits: int, group: int | None, *, ordered: bool = True) -> Scheme:
    """AutoGPTQ 0.7: 32-bit words along the inputs; None is one group for all; `ordered`, each input's group is stored."""

    def layout(out: int, inputs: int) -> list[StoredPart]:
        groups = -(-inputs // group) if group else 1
        return [
            StoredPart("qweight", "int32", (-(-inputs * bits // 32), out)),
            StoredPart("qzeros", "int32", (groups, -(-out * bits // 32))),
            StoredPart("scales", "float16", (groups, out)),
            *([StoredPart("g_idx", "int32", (inputs,))] if ordered else []),
        ]

    return Scheme(f"int{bits}", layout)


def awq(bits: int, group: int | None) -> Scheme:
    """AutoAWQ 0.2, `gemm`: 32-bit words along the outputs."""

    def layout(out: int, inputs: int) -> list[StoredPart]:
        groups = -(-inputs // group) if group else 1
        return [
            StoredPart("qweight", "int32", (inputs, -(-out * bits // 32))),
            StoredPart("qzeros", "int32", (groups, -(-out * bits // 32))),
            StoredPart("scales", "float16", (groups, out)),
        ]

    return Scheme(f"int{bits}", layout)


def blocks_of_64(kind: str, *, nested: bool) -> Scheme:
    """Blocks of 64 values, whose scales are quantised in blocks of 256; the JSON of a hundred bytes is left out."""

    def layout(out: int, inputs: int) -> list[StoredPart]:
        blocks = -(-out * inputs // 64)
        twice = [
            StoredPart("weight.nested_absmax", "float32", (-(-blocks // 256),)),
            StoredPart("weight.nested_quant_map", "float32", (256,)),
        ]
        return [
            StoredPart("weight", "uint8", (-(-out * inputs // 2), 1)),
            StoredPart("weight.absmax", "uint8" if nested else "float32", (blocks,)),
            StoredPart("weight.quant_map", "float32", (16,)),
            *(twice if nested else ()),
        ]

    return Scheme(kind, layout)


def llm_int8(out: int, inputs: int) -> list[StoredPart]:
    """A byte for each value, a scale for each row (bitsandbytes 0.50, `Linear8bitLt`)."""
    return [
        StoredPart("weight", "int8", (out, inputs)),
        StoredPart("SCB", "float32", (out,)),
        StoredPart("weight_format", "uint8", ()),
    ]


def grouped(bits: int, group: int | None, dtype: str, values: str, *beside: str, rows: int = 8) -> Scheme:
    """Values of a row in groups, each with a scale and what else is named; several values to a byte."""

    def layout(out: int, inputs: int) -> list[StoredPart]:
        groups = out * -(-inputs // group) if group else out
        held = (
            -(-groups // 10) * (group or inputs) * 4 if bits == 3 and values == "W_q" else out * inputs * bits // rows
        )
        return [StoredPart(values, "uint8", (held,)), *(StoredPart(name, dtype, (groups, 1)) for name in beside)]

    return Scheme(f"int{bits}", layout)


def mlx(bits: int, group: int, scale: str = "bfloat16", *, biases: bool = True) -> Scheme:
    """MLX 0.32: 32-bit words, a scale and a bias for each group, of floats no bias; what no group fills stays as it is."""
    dtype = f"int{bits}" if biases else {4: E2M1, 8: E4M3}[bits]
    return Scheme(
        dtype,
        lambda out, inputs: (
            [
                StoredPart("weight", "uint32", (out, inputs * bits // 32)),
                StoredPart("scales", scale, (out, inputs // group)),
                *([StoredPart("biases", scale, (out, inputs // group))] if biases else []),
            ]
            if inputs % group == 0
            else []
        ),
    )
