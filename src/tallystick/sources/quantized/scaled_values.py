"""Read values of one byte with a scale, or narrower ones packed in bytes: FP8, LLM.int8(), EETQ."""

from __future__ import annotations

import math

from tallystick.formats.weights_file import Weight
from tallystick.sources.quantized.narrow_floats import narrow_floats
from tallystick.sources.quantized.packed_weight import PackedWeight


def scaled(parts: PackedWeight) -> Weight | None:
    """Read a weight with a scale: 8-bit values as they are, narrower values packed in bytes.

    - float8 with a scale for each tile (`weight_scale_inv`: DeepSeek-V3's inference/kernel.py,
      transformers 5.23 integrations/finegrained_fp8.py), row or tensor (`weight_scale`:
      compressed-tensors, fbgemm, ModelOpt)
    - NVFP4 by ModelOpt (`weight` [out, in/2], `weight_scale` a float8 for 16, `weight_scale_2`)
    - MXFP4 in bytes with the exponents in `weight_scale_inv`
    - BitNet's ternary weights, four in a byte along the outputs (transformers 5.23,
      integrations/bitnet.py)
    - Gemma's, several in a byte along the inputs (integrations/gemma_quant.py)
    """
    values, scale = "", next(one for one in ("_scale", "_scale_inv") if parts.has(one))
    if not parts.has(values):
        return None
    shape, scales = parts.shape(values), parts.shape(scale)
    if parts.dtype(values) == "uint8":
        return _several_to_a_byte(parts, values, scale)
    if parts.dtype(values) == "int8" and parts.dtype(scale) == "float8_e8m0fnu":
        return narrow_floats(parts, values, scale)
    if parts.dtype(values) != "int8" and not parts.dtype(values).startswith("float8"):
        return None
    if math.prod(scales) > math.prod(shape):
        parts.contradiction(values, scale)
    return Weight(shape, parts.dtype(values))


def _several_to_a_byte(parts: PackedWeight, values: str, scale: str) -> Weight | None:
    """Read BitNet's, Gemma's or ModelOpt's bytes."""
    if math.prod(parts.shape(scale)) == 1:
        outputs, inputs = parts.shape(values, 2)
        return Weight((outputs * 4, inputs), "int2", "BitNet")
    if parts.quantization.get("quant_method") == "gemma":
        return gemma(parts, values, scale)
    weight = narrow_floats(parts, values, scale)
    return weight and weight._replace(scheme="ModelOpt")


def llm_int8(parts: PackedWeight) -> Weight | None:
    """Read LLM.int8(): one byte for each value.

    bitsandbytes 0.50, nn.Linear8bitLt: `weight`, `SCB` with a scale for each row, `weight_format`.
    """
    if not parts.has(".weight") or parts.dtype(".weight") != "int8":
        return None
    shape = parts.shape(".weight", 2)
    if parts.shape(".SCB") != shape[:1]:
        parts.contradiction(".weight", ".SCB")
    return Weight(shape, "int8")


def eetq(parts: PackedWeight) -> Weight | None:
    """Read EETQ: one byte for each value, stored transposed.

    transformers 5.23, integrations/eetq.py: `weight` [in, out], `weight_scales` [out].
    """
    if not parts.has(".weight") or parts.dtype(".weight") != "int8":
        return None
    inputs, outputs = parts.shape(".weight", 2)
    if parts.shape(".weight_scales") != (outputs,):
        parts.contradiction(".weight", ".weight_scales")
    return Weight((outputs, inputs), "int8")


def gemma(parts: PackedWeight, values: str, scale: str) -> Weight | None:
    """Read Gemma's 2-, 4- or 8-bit values along the inputs.

    Return None if the config sets the bits by pattern.

    Args:
        parts: the tensors of the weight.
        values: the ending of the tensor with the values.
        scale: the ending of the tensor with the scales.
    """
    shape, bits = parts.shape(values, 2), parts.stated_bits
    if parts.shape(scale)[:1] != shape[:1]:
        parts.contradiction(values, scale)
    if parts.dtype(values) == "int8":
        return Weight(shape, "int8", "Gemma")
    if parts.quantization.get("module_quant_configs") or bits not in (2, 4) or parts.dtype(values) != "uint8":
        return None
    return Weight((shape[0], shape[1] * 8 // bits), f"int{bits}", "Gemma")


def gemma_embedding(parts: PackedWeight) -> Weight | None:
    """Read `embedding_quantized` [vocabulary, width·bits/8] and `embedding_scale`."""
    return gemma(parts, ".embedding_quantized", ".embedding_scale")
