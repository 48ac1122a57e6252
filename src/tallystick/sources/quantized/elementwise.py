"""Unpack each library's element-wise quantised weights to logical shape and dtype.

The shapes of the parts determine the packing. If they leave it open, the library's own note of a
few bytes or the config decides. A function returns None if the tensors are something else, or
their packing is unknown. It raises `BadInput` for parts that contradict each other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput, shown
from tallystick.formats.weights_file import Weight
from tallystick.sources.quantized.packed_weight import PackedWeight, is_size


def bitsandbytes(parts: PackedWeight) -> Weight | None:
    """Read bitsandbytes 4-bit: two values in a byte; a JSON next to the weight notes its shape.

    bitsandbytes 0.50, functional.QuantState.as_dict(packed=True) and nn.Params4bit: `weight`,
    `weight.absmax`, `weight.quant_map` and `weight.quant_state.bitsandbytes__nf4`; `quant_storage`
    may be wider than a byte.
    """
    kinds = [kind for kind in ("nf4", "fp4") if parts.has(f".quant_state.bitsandbytes__{kind}")]
    if not kinds or not parts.has(""):
        return None
    ending = f".quant_state.bitsandbytes__{kinds[0]}"
    most = math.prod(parts.shape("")) * BITS[parts.dtype("")] // 4
    noted = parts.note(ending)
    if noted is None:
        return Weight((most,), kinds[0])
    try:
        state = json.loads(noted)
        shape, block = state["shape"], state["blocksize"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadInput(
            f"{parts.named(ending)} holds {shown(noted, most=60)}, expected a JSON with a shape", code="malformed"
        ) from None
    if not isinstance(shape, list) or not all(map(is_size, shape)) or not is_size(block):
        raise BadInput(
            f"{parts.named(ending)} gives the shape {shown(shape)} and the blocksize {shown(block)}", code="malformed"
        )
    size = math.prod(shape)
    if not most - BITS[parts.dtype("")] // 4 < size <= most:
        raise BadInput(
            f"{parts.named('')} holds {most:,} packed values, but its quant_state says {shown(shape)}", code="malformed"
        )
    if math.prod(parts.shape(".absmax")) != -(-size // block):
        parts.contradiction("", ".absmax")
    return Weight(tuple(shape), kinds[0])


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
    other = {"uint8": _fp_quant, "int16": _awq_fast}.get(parts.dtype(".qweight"))
    if other or parts.dtype(".qweight") != "int32":
        return other and other(parts)
    rows, columns = parts.shape(".qweight", 2)
    groups, outputs = parts.shape(".scales")
    if rows == groups and not parts.has(".g_idx"):
        bits = _bits(parts.quantization) or 4
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
        bits = _bits(parts.quantization) or 4
    return parts.whole(rows * 32, bits, ".qweight"), bits


def _awq_fast(parts: PackedWeight) -> Weight:
    """Read AWQ's fast layout: four rows of 4 bits in one row of 16-bit words.

    AutoAWQ 0.2, modules/linear/gemv_fast.py; `scales` [groups, out].
    """
    rows, inputs = parts.shape(".qweight", 2)
    if parts.shape(".scales")[1] != 4 * rows:
        parts.contradiction(".qweight", ".scales")
    return Weight((4 * rows, inputs), "int4", "AWQ")


def _fp_quant(parts: PackedWeight) -> Weight | None:
    """Read FP-Quant: two floats in a byte, along the inputs.

    transformers 5.23, integrations/fp_quant.py; `scales` [out, in/group].
    """
    above, columns = parts.rows(".qweight")
    rows, groups = parts.rows(".scales")
    if parts.whole(columns * 2, groups, ".qweight", ".scales") not in (16, 32) or rows != above:
        parts.contradiction(".qweight", ".scales")
    return Weight((*above, columns * 2), "float4_e2m1fn", "FP-Quant")


def compressed_tensors(parts: PackedWeight) -> Weight | None:
    """Read `weight_packed`: integers in 32-bit words, or 4- and 6-bit floats in bytes.

    compressed-tensors 0.20, compressors: pack_quantized (`weight_shape` notes the shape, whose last
    size may not fill its words), nvfp4 (a float8 scale for 16 values), mxfp4 and mxfp6 (a uint8
    exponent for 32 values).
    """
    if parts.dtype(".weight_packed") != "int32":
        return _narrow_floats(parts, ".weight_packed", ".weight_scale")
    above, words = parts.rows(".weight_packed")
    noted = parts.note(".weight_shape")
    bits = _bits(parts.quantization)
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


def _narrow_floats(parts: PackedWeight, values: str, scales: str) -> Weight | None:
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
        return _narrow_floats(parts, values, scale)
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
    weight = _narrow_floats(parts, values, scale)
    return weight and weight._replace(scheme="ModelOpt")


def gemma(parts: PackedWeight, values: str, scale: str) -> Weight | None:
    """Read Gemma's 2-, 4- or 8-bit values along the inputs.

    Return None if the config sets the bits by pattern.

    Args:
        parts: the tensors of the weight.
        values: the ending of the tensor with the values.
        scale: the ending of the tensor with the scales.
    """
    shape, bits = parts.shape(values, 2), _bits(parts.quantization)
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


def hqq(parts: PackedWeight) -> Weight | None:
    """Read HQQ's `W_q`: groups of values, several in a byte, or ten of 3 bits in 32.

    hqq 0.2.8, core/quantize.py, `HQQLinear.state_dict`, and core/bitpack.py. `shape` and `nbits`
    note the weight's shape and bits.
    """
    shape, bits = _noted_by_hqq(parts)
    how = parts.quantization.get("quant_config")
    quantization = how.get("weight_quant_params", how) if isinstance(how, Mapping) else {}
    group = quantization.get("group_size")
    bits = bits or quantization.get("nbits")
    if shape is None and is_size(group) and parts.has(".scale"):
        shape = (math.prod(parts.shape(".scale")) * group,)
    if shape is None or not is_size(bits) or bits > 8:
        return None
    above, columns = parts.rows(".W_q")
    held = BITS[parts.dtype(".W_q")] // bits  # values in one stored element
    most = math.prod(above) * columns * held
    if not all(map(is_size, shape)) or not most - held * columns < math.prod(shape) <= most:
        raise BadInput(
            f"{parts.named('.W_q')} holds up to {most:,} packed values, but its shape says {shown(shape)}",
            code="malformed",
        )
    return Weight(shape, f"int{bits}")


def _noted_by_hqq(parts: PackedWeight) -> tuple[tuple[int, ...] | None, int | None]:
    """Return the shape and the bits that HQQ notes, in small tensors or in the metadata."""
    if quantization := parts.metadata.get(f"{parts.stem}.W_q"):
        try:
            said = json.loads(quantization)
            return tuple(said["shape"]), int(said["nbits"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None, None
    shape, bits = parts.note(".shape"), parts.note(".nbits")
    sizes = None if shape is None else (shape[at : at + 8] for at in range(0, len(shape), 8))
    return (
        None if sizes is None else tuple(int.from_bytes(size, "little") for size in sizes),
        None if bits is None else int.from_bytes(bits, "little"),
    )


def quanto(parts: PackedWeight) -> Weight | None:
    """Read quanto: `weight._data` in 8 bits, or `weight._data._data` with groups of packed rows.

    optimum-quanto 0.2.7, tensor/weights/qbits.py and tensor/packed.py. There is one scale for each
    group, in rows.
    """
    if not parts.has(".weight._data._data"):
        return Weight(parts.shape(".weight._data"), parts.dtype(".weight._data"))
    rows, size = parts.shape(".weight._data._data", 2)
    groups, one = parts.shape(".weight._scale", 2)
    if one != 1 or parts.dtype(".weight._data._data") != "uint8":
        return None
    bits = next((bits for bits in (4, 2) if -(-groups * bits // 8) == rows), None)
    if bits is None:
        parts.contradiction(".weight._data._data", ".weight._scale")
    return Weight((groups * size,), f"int{bits}")


def torchao(parts: PackedWeight) -> Weight | None:
    """Read torchao's inner tensors `_weight_qdata`, `_weight_scale`, … and their `__metadata__`.

    torchao 0.18, prototype/safetensors, `flatten_tensor_state_dict`. The metadata has a `shape`
    only if the qdata's shape differs. 4-bit packings differ between kernels, and some pad.
    """
    module, _, name = parts.stem.rpartition(".")
    shape, kind = parts.shape("_qdata"), ""
    data: Mapping[str, Any] = {}
    if noted := parts.metadata.get(f"{module}.{name[1:]}"):
        try:
            quantization = json.loads(noted)
            kind, data = str(quantization["_type"]), quantization["_data"]
            stated = data.get("shape")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BadInput(
                f"__metadata__ of {parts.named('')} is {shown(noted)}, which torchao does not write", code="malformed"
            ) from None
        if stated is not None:
            if not isinstance(stated, list) or not stated or not all(map(is_size, stated)):
                raise BadInput(f"__metadata__ gives {parts.named('')} the shape {shown(stated)}", code="malformed")
            shape = tuple(stated)
    stored, dtype = math.prod(parts.shape("_qdata")), parts.dtype("_qdata")
    float4 = kind in ("NVFP4Tensor", "MXTensor") and dtype == "uint8"
    if float4 and data.get("shape") is None:
        above, columns = parts.rows("_qdata")
        shape = (*above, columns * 2)
    if kind.startswith("Int4") or float4:
        if stored * BITS[dtype] < math.prod(shape) * 4:
            parts.contradiction("_qdata")
        return Weight(shape, "float4_e2m1fn" if float4 else "int4")
    if math.prod(shape) != stored:
        parts.contradiction("_qdata")
    return Weight(shape, dtype) if kind or dtype != "uint8" else None


def _bits(quantization: Mapping[str, Any]) -> int | None:
    """Return the bits of a value from GPTQ's, AWQ's or compressed-tensors' config.

    compressed-tensors' groups must agree; otherwise return None.
    """
    groups = quantization.get("config_groups")
    each = (
        [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
        if isinstance(groups, Mapping)
        else []
    )
    stated = {one.get("num_bits") for one in each if isinstance(one, Mapping) and isinstance(one.get("num_bits"), int)}
    bits = (
        quantization.get("bits", quantization.get("w_bit", quantization.get("num_bits")))
        if not stated
        else stated.pop()
        if len(stated) == 1
        else None
    )
    return bits if is_size(bits) and bits <= 8 else None
