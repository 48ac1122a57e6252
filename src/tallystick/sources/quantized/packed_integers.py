"""Unpack integers in 32-bit words: GPTQ, AWQ, compressed-tensors, MLX.

The shapes of the parts determine the packing. If they leave it open, the library's own note of a
few bytes or the config decides. A function returns None if the tensors are something else, or
their packing is unknown. It raises `BadInput` for parts that contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tallystick.errors import BadInput, shown
from tallystick.formats.weights_file import Weight
from tallystick.sources.quantized.narrow_floats import fp_quant, narrow_floats
from tallystick.sources.quantized.packed_weight import PackedWeight, is_size


def gptq_or_awq(parts: PackedWeight) -> Weight | None:
    """Read GPTQ or AWQ: values in 32-bit words, a scale for each group of inputs and each output.

    GPTQ (AutoGPTQ 0.7, nn_modules/qlinear: `qweight` [in·bits/32, out], `qzeros` [groups,
    out·bits/32], `scales` [groups, out], `g_idx` [in]) packs along the inputs. AWQ (AutoAWQ 0.2,
    modules/linear/gemm.py: `qweight` [in, out·bits/32]) packs along the outputs; its `gemv` layout
    is transposed, its `marlin` layout is [in/16, 2·out]. Other libraries use the same names for
    bytes and for 16-bit words.
    """
    if not parts.has(".scales") or len(parts.shape(".scales")) != 2:
        return None  # another library's tensors
    other = {"uint8": fp_quant, "int16": _awq_fast}.get(parts.dtype(".qweight"))
    if other or parts.dtype(".qweight") != "int32":
        return other and other(parts)
    rows, columns = parts.shape(".qweight", 2)
    groups, outputs = parts.shape(".scales")
    if rows == groups and not parts.has(".g_idx"):
        bits = parts.stated_bits or 4
        inputs, outputs, groups, whose = parts.whole(columns * 32, bits, ".qweight"), rows, 1, "AWQ"
    elif columns == outputs:
        inputs, bits = _gptq(parts, rows, outputs)
        whose = "GPTQ"
    elif columns == 2 * outputs:
        bits, inputs, whose = 4, rows * 16, "AWQ"
    else:
        bits, inputs, whose = parts.whole(columns * 32, outputs, ".qweight", ".scales"), rows, "AWQ"
    if bits not in range(1, 9) or not 0 < groups <= inputs:
        parts.contradiction(".qweight", ".scales")
    if parts.has(".g_idx") and parts.shape(".g_idx") != (inputs,):
        parts.contradiction(".qweight", ".g_idx")
    return Weight((outputs, inputs), f"int{bits}", whose)


def _gptq(parts: PackedWeight, rows: int, outputs: int) -> tuple[int, int]:
    """Return the number of inputs and the bits of a value."""
    if parts.has(".qzeros"):
        zeros = parts.shape(".qzeros", 2)
        if zeros[0] != parts.shape(".scales")[0]:
            parts.contradiction(".qzeros", ".scales")
        bits = parts.whole(zeros[1] * 32, outputs, ".qzeros", ".scales")
    elif parts.has(".g_idx"):
        bits = parts.whole(rows * 32, parts.shape(".g_idx", 1)[0], ".qweight", ".g_idx")
    else:
        bits = parts.stated_bits or 4
    return parts.whole(rows * 32, bits, ".qweight"), bits


def _awq_fast(parts: PackedWeight) -> Weight:
    """Read AWQ's fast layout: four rows of 4 bits in one row of 16-bit words.

    AutoAWQ 0.2, modules/linear/gemv_fast.py; `scales` [groups, out].
    """
    rows, inputs = parts.shape(".qweight", 2)
    if parts.shape(".scales")[1] != 4 * rows:
        parts.contradiction(".qweight", ".scales")
    return Weight((4 * rows, inputs), "int4", "AWQ")


def compressed_tensors(parts: PackedWeight) -> Weight | None:
    """Read `weight_packed`: integers in 32-bit words, or 4- and 6-bit floats in bytes.

    compressed-tensors 0.20, compressors: pack_quantized (`weight_shape` notes the shape, whose last
    size may not fill its words), nvfp4 (a float8 scale for 16 values), mxfp4 and mxfp6 (a uint8
    exponent for 32 values).
    """
    if parts.dtype(".weight_packed") != "int32":
        return narrow_floats(parts, ".weight_packed", ".weight_scale")
    above, words = parts.rows(".weight_packed")
    noted = parts.note(".weight_shape")
    bits = parts.stated_bits
    if noted is not None:
        shape = tuple(int.from_bytes(noted[at : at + 8], "little", signed=True) for at in range(0, len(noted), 8))
        if len(shape) != len(above) + 1 or shape[:-1] != above or not 0 < shape[-1] <= 32 * words:
            raise BadInput(
                f"{parts.named('.weight_shape')} says {shown(shape)}, which does not match the packed shape"
                f" {(*above, words)}",
                code="malformed",
            )
        bits = bits if bits and _words(shape[-1], bits) == words else min(words * 32 // shape[-1], 8)
    elif bits:
        shape = (*above, words * 32 // bits)
    else:
        return None
    if words not in (_words(shape[-1], bits), -(-shape[-1] // (32 // bits))):
        parts.contradiction(".weight_packed", ".weight_shape")
    scales = parts.shape(".weight_scale")
    if math.prod(scales) != 1 and (scales[:-1] != above or scales[-1] > shape[-1]):
        parts.contradiction(".weight_packed", ".weight_scale")
    return Weight(shape, f"int{bits}")


def _words(elements: int, bits: int) -> int:
    """Return the number of 32-bit words for `elements` values, packed without gaps."""
    return -(-elements * bits // 32)


def mlx(parts: PackedWeight) -> Weight | None:
    """Read MLX: `weight` [out, in·bits/32] in unsigned words, `scales` and `biases`.

    `scales` and `biases` are [out, in/group]. MLX 0.32, mlx.core.quantize. Group size and bits are
    in the config's `quantization` (mlx-lm), for all layers or for single ones. Float modes have no
    `biases`; the number of scales determines the format. transformers 5.23 packs the same way for
    Metal (integrations/metal_quantization.py), and calls the biases `qbiases`.
    """
    if not parts.has(".weight") or parts.dtype(".weight") != "uint32":
        return None
    above, words = parts.rows(".weight")
    rows, groups = parts.rows(".scales")
    if rows != above:
        parts.contradiction(".weight", ".scales")
    biases, whose = (".qbiases", "Metal") if parts.has(".qbiases") else (".biases", "MLX")
    if not parts.has(biases):
        width, group, dtype = {
            4: (4, 32, "float4_e2m1fn"),
            2: (4, 16, "float4_e2m1fn"),
            8: (8, 32, "float8_e4m3fn"),
        }.get(words // groups, (0, 0, ""))
        if not width or words * 32 != groups * group * width:
            parts.contradiction(".weight", ".scales")
        return Weight((*above, groups * group), dtype)
    if parts.shape(biases) != parts.shape(".scales"):
        parts.contradiction(".scales", biases)
    own = parts.quantization.get(parts.stem)
    quantization = own if isinstance(own, Mapping) else parts.quantization
    bits, size = quantization.get("bits"), quantization.get("group_size")
    if bits is None or size is None:
        return None
    if not is_size(bits) or not is_size(size) or bits > 8:
        raise BadInput(
            f"the config's quantization says bits {shown(bits)} and group_size {shown(size)}", code="bad-value"
        )
    if words * 32 != groups * size * bits:
        raise BadInput(
            f"{parts.named('.weight')} of shape {(*above, words)} with scales of shape {(*above, groups)} does"
            f" not match the config's {bits} bits and groups of {size}",
            code="mismatch",
        )
    return Weight((*above, groups * size), f"int{bits}", whose)
