"""How each library packs a weight into tensors, and what these stand for.

It is told by the shapes of the parts; where they leave it open, by the few bytes in which the library notes it, or by
the config. Parts that contradict each other are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeGuard

from tallystick.errors import BadInput, quoted, shown
from tallystick.ledger import BITS

Tensor = tuple[str, str, tuple[int, ...]]  # name, dtype, shape
Peek = Callable[[str], bytes | None]  # the bytes of a small tensor, None where they cannot be read


class Weight(NamedTuple):
    """A weight as the model has it."""

    shape: tuple[int, ...]
    dtype: str
    scheme: str = ""  # who packed it
    stored: int = 0  # elements of the tensor that holds its values
    bytes: int = 0  # of that tensor

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)


class Parts:
    """The tensors in which one weight is stored, by the ends of their names."""

    def __init__(
        self, stem: str, tensors: Mapping[str, Tensor], peek: Peek, told: Mapping[str, Any], metadata: Mapping[str, str]
    ) -> None:
        self.stem, self._tensors, self._peek = stem, tensors, peek
        self.told, self.metadata = told, metadata

    def has(self, ending: str) -> bool:
        """Whether there is a part whose name ends so."""
        return self.stem + ending in self._tensors

    def dtype(self, ending: str) -> str:
        """The dtype in which a part is stored."""
        return self._tensors[self.stem + ending][1]

    def shape(self, ending: str, dimensions: int | None = None) -> tuple[int, ...]:
        """The shape of a part, which must be there, and have so many dimensions where that is asked."""
        if not self.has(ending):
            raise BadInput(f"{self.named('')} is packed, and {self.named(ending)} is not there")
        shape = self._tensors[self.stem + ending][2]
        if dimensions not in (None, len(shape)):
            self.contradiction(ending)
        return shape

    def rows(self, ending: str) -> tuple[tuple[int, ...], int]:
        """The shape of a part without its last size, and that, which is not 0."""
        shape = self.shape(ending)
        if not shape or not shape[-1]:
            self.contradiction(ending)
        return shape[:-1], shape[-1]

    def note(self, ending: str) -> bytes | None:
        """What a library noted in a tensor of a few bytes."""
        return self._peek(self.stem + ending) if self.has(ending) else None

    def named(self, ending: str) -> str:
        """The name of a part, for messages."""
        return quoted(self.stem + ending, most=120)

    def contradiction(self, *endings: str) -> NoReturn:
        """Refuse parts that are of no one weight."""
        parts = [f"{self.named(one)} of shape {self._tensors[self.stem + one][2]}" for one in endings]
        what = "cannot belong to one packed weight" if len(parts) > 1 else "cannot belong to a packed weight"
        raise BadInput(f"{' and '.join(parts)} {what}: the file is broken, or packed otherwise than its names say")

    def whole(self, dividend: int, divisor: int, *endings: str) -> int:
        """A quotient that has to be whole."""
        if not divisor or dividend % divisor:
            self.contradiction(*endings)
        return dividend // divisor


# -- what each library stores ---------------------------------------------------------------------


def bitsandbytes(parts: Parts) -> Weight | None:
    """Two values in a byte, whatever the weight's shape, which a JSON beside it notes.

    bitsandbytes 0.50, functional.QuantState.as_dict(packed=True) and nn.Params4bit: `weight`, `weight.absmax`,
    `weight.quant_map` and `weight.quant_state.bitsandbytes__nf4`; `quant_storage` may be wider than a byte.
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
        raise BadInput(f"{parts.named(ending)} holds {shown(noted, most=60)}, expected a JSON with a shape") from None
    if not isinstance(shape, list) or not all(map(_is_size, shape)) or not _is_size(block):
        raise BadInput(f"{parts.named(ending)} gives the shape {shown(shape)} and the blocksize {shown(block)}")
    size = math.prod(shape)
    if not most - BITS[parts.dtype("")] // 4 < size <= most:
        raise BadInput(f"{parts.named('')} holds {most:,} packed values, and its quant_state says {shown(shape)}")
    if math.prod(parts.shape(".absmax")) != -(-size // block):
        parts.contradiction("", ".absmax")
    return Weight(tuple(shape), kinds[0])


def llm_int8(parts: Parts) -> Weight | None:
    """A byte for each value. bitsandbytes 0.50, nn.Linear8bitLt: `weight`, `SCB` with a scale for each row, `weight_format`."""
    if not parts.has(".weight") or parts.dtype(".weight") != "int8":
        return None
    shape = parts.shape(".weight", 2)
    if parts.shape(".SCB") != shape[:1]:
        parts.contradiction(".weight", ".SCB")
    return Weight(shape, "int8")


def gptq_or_awq(parts: Parts) -> Weight | None:
    """Values in 32-bit words, a scale for each group of inputs and each output.

    GPTQ (AutoGPTQ 0.7, nn_modules/qlinear: `qweight` [in·bits/32, out], `qzeros` [groups, out·bits/32], `scales`
    [groups, out], `g_idx` [in]) packs along the inputs; AWQ (AutoAWQ 0.2, modules/linear/gemm.py: `qweight`
    [in, out·bits/32]) along the outputs, and its `gemv` has them transposed.
    """
    if parts.dtype(".qweight") != "int32" or not parts.has(".scales") or len(parts.shape(".scales")) != 2:
        return None  # somebody else's
    rows, columns = parts.shape(".qweight", 2)
    groups, outputs = parts.shape(".scales")
    if rows == groups and not parts.has(".g_idx"):
        bits = _bits(parts.told) or 4
        inputs, outputs, groups, whose = parts.whole(columns * 32, bits, ".qweight"), rows, 1, "AWQ"
    elif columns == outputs:
        inputs, bits = _gptq(parts, rows, outputs)
        whose = "GPTQ"
    else:
        bits, inputs, whose = parts.whole(columns * 32, outputs, ".qweight", ".scales"), rows, "AWQ"
    if bits not in range(1, 9) or not 0 < groups <= inputs:
        parts.contradiction(".qweight", ".scales")
    if parts.has(".g_idx") and parts.shape(".g_idx") != (inputs,):
        parts.contradiction(".qweight", ".g_idx")
    return Weight((outputs, inputs), f"int{bits}", whose)


def _gptq(parts: Parts, rows: int, outputs: int) -> tuple[int, int]:
    """How many inputs, and bits for each."""
    if parts.has(".qzeros"):
        zeros = parts.shape(".qzeros", 2)
        if zeros[0] != parts.shape(".scales")[0]:
            parts.contradiction(".qzeros", ".scales")
        bits = parts.whole(zeros[1] * 32, outputs, ".qzeros", ".scales")
    elif parts.has(".g_idx"):
        bits = parts.whole(rows * 32, parts.shape(".g_idx", 1)[0], ".qweight", ".g_idx")
    else:
        bits = _bits(parts.told) or 4
    return parts.whole(rows * 32, bits, ".qweight"), bits


def compressed_tensors(parts: Parts) -> Weight | None:
    """`weight_packed`: integers in 32-bit words, or 4- and 6-bit floats in bytes.

    compressed-tensors 0.20, compressors: pack_quantized (`weight_shape` notes the shape, whose last size may not fill
    its words), nvfp4 (a float8 scale for 16), mxfp4 and mxfp6 (a uint8 exponent for 32).
    """
    if parts.dtype(".weight_packed") != "int32":
        return _narrow_floats(parts, ".weight_packed", ".weight_scale")
    above, words = parts.rows(".weight_packed")
    noted = parts.note(".weight_shape")
    bits = _bits(parts.told)
    if noted is not None:
        shape = tuple(int.from_bytes(noted[at : at + 8], "little", signed=True) for at in range(0, len(noted), 8))
        if len(shape) != len(above) + 1 or shape[:-1] != above or not 0 < shape[-1] <= 32 * words:
            raise BadInput(
                f"{parts.named('.weight_shape')} says {shape}, which {(*above, words)} cannot be packed from"
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
    """32-bit words that so many elements fill, none of them split from the next."""
    return -(-elements * bits // 32)


def _narrow_floats(parts: Parts, values: str, scales: str) -> Weight | None:
    """Floats of 4 or 6 bits in bytes, with a scale for each 16 (float8) or 32 (an exponent) of a row."""
    if parts.dtype(values) != "uint8":
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


def mxfp4(parts: Parts) -> Weight | None:
    """gpt-oss: `gate_up_proj_blocks` [experts, out, in/32, 16] and `_scales` [experts, out, in/32].

    transformers 5.23, integrations/mxfp4.py, `convert_moe_packed_tensors`, which transposes what it unpacks.
    """
    if parts.dtype("_blocks") != "uint8" or not parts.has("_scales"):
        return None
    experts, rows, groups, width = parts.shape("_blocks", 4)
    if parts.shape("_scales") != (experts, rows, groups) or width != 16:
        parts.contradiction("_blocks", "_scales")
    return Weight((experts, groups * 32, rows), "float4_e2m1fn")


def mlx(parts: Parts) -> Weight | None:
    """`weight` [out, in·bits/32] in unsigned words, `scales` and `biases` [out, in/group].

    MLX 0.32, mlx.core.quantize; group size and bits are in the config's `quantization` (mlx-lm), for all layers and for
    single ones. Floats (`mode`) have no `biases`, and their scales tell which they are.
    """
    if not parts.has(".weight") or parts.dtype(".weight") != "uint32":
        return None
    above, words = parts.rows(".weight")
    rows, groups = parts.rows(".scales")
    if rows != above:
        parts.contradiction(".weight", ".scales")
    if not parts.has(".biases"):
        width, group, dtype = {
            4: (4, 32, "float4_e2m1fn"),
            2: (4, 16, "float4_e2m1fn"),
            8: (8, 32, "float8_e4m3fn"),
        }.get(words // groups, (0, 0, ""))
        if not width or words * 32 != groups * group * width:
            parts.contradiction(".weight", ".scales")
        return Weight((*above, groups * group), dtype)
    if parts.shape(".biases") != parts.shape(".scales"):
        parts.contradiction(".scales", ".biases")
    own = parts.told.get(parts.stem)
    told = own if isinstance(own, Mapping) else parts.told
    bits, size = told.get("bits"), told.get("group_size")
    if bits is None or size is None:
        return None
    if not _is_size(bits) or not _is_size(size) or bits > 8:
        raise BadInput(f"the config's quantization says bits {shown(bits)} and group_size {shown(size)}")
    if words * 32 != groups * size * bits:
        raise BadInput(
            f"{parts.named('.weight')} of shape {(*above, words)} with scales of shape {(*above, groups)} is not"
            f" packed in {bits} bits and groups of {size}, as the config says"
        )
    return Weight((*above, groups * size), f"int{bits}")


def scaled(parts: Parts) -> Weight | None:
    """A weight with a scale: as it is in 8 bits, several values to a byte below.

    float8 with a scale for each tile (`weight_scale_inv`: DeepSeek-V3's inference/kernel.py, transformers 5.23
    integrations/finegrained_fp8.py), row or tensor (`weight_scale`: compressed-tensors, fbgemm, ModelOpt); NVFP4 as
    ModelOpt writes it (`weight` [out, in/2], `weight_scale` a float8 for 16, `weight_scale_2`); BitNet's ternary
    weights, four to a byte along the outputs (transformers 5.23, integrations/bitnet.py).
    """
    values, scale = "", next(one for one in ("_scale", "_scale_inv") if parts.has(one))
    if not parts.has(values):
        return None
    shape, scales = parts.shape(values), parts.shape(scale)
    if parts.dtype(values) == "uint8":
        if math.prod(scales) == 1:
            outputs, inputs = parts.shape(values, 2)
            return Weight((outputs * 4, inputs), "int2", "BitNet")
        weight = _narrow_floats(parts, values, scale)
        return weight and weight._replace(scheme="ModelOpt")
    if parts.dtype(values) != "int8" and not parts.dtype(values).startswith("float8"):
        return None
    if math.prod(scales) > math.prod(shape):
        parts.contradiction(values, scale)
    return Weight(shape, parts.dtype(values))


def torchao(parts: Parts) -> Weight | None:
    """`_weight_qdata`, `_weight_scale`, …: the tensors inside torchao's, and in `__metadata__` a JSON with the rest.

    torchao 0.18, prototype/safetensors, `flatten_tensor_state_dict`. A class has a `shape` only where its qdata have
    another; four bits are packed in as many ways as there are kernels, some of which pad.
    """
    module, _, name = parts.stem.rpartition(".")
    shape, kind = parts.shape("_qdata"), ""
    data: Mapping[str, Any] = {}
    if noted := parts.metadata.get(f"{module}.{name[1:]}"):
        try:
            told = json.loads(noted)
            kind, data = str(told["_type"]), told["_data"]
            stated = data.get("shape")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BadInput(
                f"__metadata__ says of {parts.named('')} {shown(noted)}, which torchao does not write"
            ) from None
        if stated is not None:
            if not isinstance(stated, list) or not stated or not all(map(_is_size, stated)):
                raise BadInput(f"__metadata__ gives {parts.named('')} the shape {shown(stated)}")
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


def _bits(told: Mapping[str, Any]) -> int | None:
    """Bits of a value: GPTQ's and AWQ's word for them, or those of compressed-tensors where all its groups agree."""
    groups = told.get("config_groups")
    each = (
        [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
        if isinstance(groups, Mapping)
        else []
    )
    stated = {one.get("num_bits") for one in each if isinstance(one, Mapping) and isinstance(one.get("num_bits"), int)}
    bits = told.get("bits", told.get("w_bit")) if not stated else stated.pop() if len(stated) == 1 else None
    return bits if _is_size(bits) and bits <= 8 else None


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
