"""Unpack 4- and 6-bit floats in bytes: NVFP4, MXFP4, MXFP6, FP-Quant."""

from __future__ import annotations

from tallystick.formats.weights_file import Weight
from tallystick.sources.quantized.packed_weight import PackedWeight


def narrow_floats(parts: PackedWeight, values: str, scales: str) -> Weight | None:
    """Read 4- or 6-bit floats in bytes, with a scale for each group of a row.

    A float8 scale has groups of 16, an exponent groups of 32.
    """
    if parts.dtype(values) not in ("uint8", "int8"):
        return None
    above, columns = parts.rows(values)
    rows, groups = parts.rows(scales)
    group = {"float8_e4m3fn": 16, "uint8": 32, "float8_e8m0fnu": 32}.get(parts.dtype(scales))
    if group is None:
        return None
    bits, rest = divmod(columns * 8, groups * group)
    if rows != above or rest or bits not in (4, 6):
        parts.contradiction(values, scales)
    return Weight((*above, groups * group), {4: "float4_e2m1fn", 6: "float6_e3m2fn"}[bits])


def fp_quant(parts: PackedWeight) -> Weight | None:
    """Read FP-Quant: two floats in a byte, along the inputs.

    transformers 5.23, integrations/fp_quant.py; `scales` [out, in/group].
    """
    above, columns = parts.rows(".qweight")
    rows, groups = parts.rows(".scales")
    if parts.whole(columns * 2, groups, ".qweight", ".scales") not in (16, 32) or rows != above:
        parts.contradiction(".qweight", ".scales")
    return Weight((*above, columns * 2), "float4_e2m1fn", "FP-Quant")


def mxfp4(parts: PackedWeight) -> Weight | None:
    """Read gpt-oss: `gate_up_proj_blocks` [experts, out, in/32, 16] and `_scales`.

    `_scales` is [experts, out, in/32]. transformers 5.23, integrations/mxfp4.py,
    `convert_moe_packed_tensors`, which transposes the unpacked weight.
    """
    if parts.dtype("_blocks") != "uint8" or not parts.has("_scales"):
        return None
    experts, rows, groups, width = parts.shape("_blocks", 4)
    if parts.shape("_scales") != (experts, rows, groups) or width != 16:
        parts.contradiction("_blocks", "_scales")
    return Weight((experts, groups * 32, rows), "float4_e2m1fn")
