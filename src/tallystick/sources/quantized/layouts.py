"""List the tensors that a library stores for a matrix, in the layouts of its packing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick.sources.quantized.packed_weight import is_size

E4M3, E2M1 = "float8_e4m3fn", "float4_e2m1fn"


class Unstated(Exception):
    """Raised for a config that does not determine a weight's bytes.

    The message says what is missing.
    """


class StoredPart(NamedTuple):
    """A tensor that is stored for a matrix; the first part holds the values."""

    ending: str  # replaces `weight` at the end of the name
    dtype: str
    shape: tuple[int, ...]


Layout = Callable[[int, int], list[StoredPart]]  # (outputs, inputs) -> the stored tensors


class Scheme(NamedTuple):
    """The storage of a matrix."""

    dtype: str  # of one logical value
    layout: Layout


def fp8(shape: Callable[[int, int], tuple[int, ...]], scale: str = "float32", *others: StoredPart) -> Scheme:
    """Return the layout of float8 values with scales of some shape.

    Args:
        shape: (outputs, inputs) -> the shape of the scales.
        scale: the dtype of the scales.
        others: further tensors that are stored.
    """
    return Scheme(
        E4M3,
        lambda out, inputs: [
            StoredPart("weight", E4M3, (out, inputs)),
            StoredPart("weight_scale", scale, shape(out, inputs)),
            *others,
        ],
    )


def tiles(size: Any) -> Callable[[int, int], tuple[int, ...]]:
    """Return the scale's shape for tiles of a size, as a config states it.

    Raises:
        Unstated: if `size` is not a pair of sizes.
    """
    if not isinstance(size, list | tuple) or len(size) != 2 or not all(map(is_size, size)):
        raise Unstated(f"its block size is {size!r}"[:80])
    return lambda out, inputs: (-(-out // size[0]), -(-inputs // size[1]))


def narrow_floats(
    group: int, *, of: str = "weight_packed", scale: str = "uint8", others: tuple[str, ...] = ()
) -> Scheme:
    """Return the layout of 4-bit floats, two in a byte, with a scale for each group.

    Args:
        group: inputs that share a scale: 32 with an exponent (MX), 16 with a float8 (NV).
        of: the name's ending of the tensor with the values.
        scale: the dtype of the scales.
        others: further float32 scalars that are stored.
    """
    return Scheme(
        E2M1,
        lambda out, inputs: [
            StoredPart(of, "uint8", (out, -(-inputs // 2))),
            StoredPart("weight_scale", scale, (out, -(-inputs // group))),
            *(StoredPart(name, "float32", (1,)) for name in others),
        ],
    )


def gptq(bits: int, group: int | None, *, ordered: bool = True) -> Scheme:
    """Return AutoGPTQ 0.7's layout: 32-bit words along the inputs.

    Args:
        bits: bits of a value.
        group: inputs that share a scale; None for one group.
        ordered: whether `g_idx` stores each input's group.
    """

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
    """Return AutoAWQ 0.2's `gemm` layout: 32-bit words along the outputs.

    Args:
        bits: bits of a value.
        group: inputs that share a scale; None for one group.
    """

    def layout(out: int, inputs: int) -> list[StoredPart]:
        groups = -(-inputs // group) if group else 1
        return [
            StoredPart("qweight", "int32", (inputs, -(-out * bits // 32))),
            StoredPart("qzeros", "int32", (groups, -(-out * bits // 32))),
            StoredPart("scales", "float16", (groups, out)),
        ]

    return Scheme(f"int{bits}", layout)


def blocks_of_64(kind: str, *, nested: bool) -> Scheme:
    """Return bitsandbytes' 4-bit layout: blocks of 64 values, without the JSON of a hundred bytes.

    Args:
        kind: the dtype of a value, ``"nf4"`` or ``"fp4"``.
        nested: whether the scales are quantised too, in blocks of 256.
    """

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
    """Return the layout of bitsandbytes 0.50 `Linear8bitLt`: a byte per value, a scale per row."""
    return [
        StoredPart("weight", "int8", (out, inputs)),
        StoredPart("SCB", "float32", (out,)),
        StoredPart("weight_format", "uint8", ()),
    ]


def grouped(bits: int, group: int | None, dtype: str, values: str, *per_group: str) -> Scheme:
    """Return the layout of rows in groups, several values in a byte.

    Args:
        bits: bits of a value.
        group: inputs that share a scale; None for a whole row.
        dtype: the dtype of the other tensors.
        values: the name's ending of the tensor with the values.
        per_group: the endings of the tensors with one number for each group.
    """

    def layout(out: int, inputs: int) -> list[StoredPart]:
        groups = out * -(-inputs // group) if group else out
        tenths = -(-groups // 10) * (group or inputs) * 4  # ten values of 3 bits in 4 bytes, by HQQ
        held = tenths if bits == 3 and values == "W_q" else out * inputs * bits // 8
        return [StoredPart(values, "uint8", (held,)), *(StoredPart(name, dtype, (groups, 1)) for name in per_group)]

    return Scheme(f"int{bits}", layout)


def mlx(bits: int, group: int, scale: str = "bfloat16", *, biases: bool = True) -> Scheme:
    """Return MLX 0.32's layout: 32-bit words, with a scale and a bias for each group.

    A matrix whose inputs do not fill whole groups is not quantised.

    Args:
        bits: bits of a value.
        group: inputs that share a scale.
        scale: the dtype of the scales.
        biases: whether there are biases; float modes have none.
    """
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
