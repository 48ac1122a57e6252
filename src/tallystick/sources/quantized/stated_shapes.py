"""Read packed weights of which the library notes the shape: bitsandbytes, HQQ, quanto, torchao."""

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
