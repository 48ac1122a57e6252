"""The block format that llama-quantize chooses for a tensor, by its part, layer and file type.

The rules are those of llama.cpp's src/llama-quant.cpp (tensor_get_category,
llama_tensor_get_type_impl, tensor_type_fallback, llama_ftype_get_default_type), of August 2026.
One rule follows earlier builds, which wrote most files: a fused projection of queries, keys
and values has a format of its own. Of the file types that an importance matrix changes, those that
llama-quantize refuses to write without one (iq1, iq2, iq3_xxs) have it; for the others, a name that
ends in ``-imatrix`` is the file with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tallystick.core.dtypes import BLOCKS

# File type -> the block format of most of its matrices (llama_ftype_get_default_type).
FILE_TYPES = {
    "q1_0": "q1_0", "q2_0": "q2_0", "q4_0": "q4_0", "q4_1": "q4_1", "q5_0": "q5_0", "q5_1": "q5_1", "q8_0": "q8_0",
    "q2_k": "q2_k", "q2_k_s": "q2_k", "q3_k_s": "q3_k", "q3_k_m": "q3_k", "q3_k_l": "q3_k", "q4_k_s": "q4_k",
    "q4_k_m": "q4_k", "q5_k_s": "q5_k", "q5_k_m": "q5_k", "q6_k": "q6_k",
    "iq1_s": "iq1_s", "iq1_m": "iq1_m", "iq2_xxs": "iq2_xxs", "iq2_xs": "iq2_xs", "iq2_s": "iq2_xs", "iq2_m": "iq2_s",
    "iq3_xxs": "iq3_xxs", "iq3_xs": "iq3_s", "iq3_s": "iq3_s", "iq3_m": "iq3_s", "iq4_nl": "iq4_nl", "iq4_xs": "iq4_xs",
    "tq1_0": "tq1_0", "tq2_0": "tq2_0", "mxfp4_moe": "mxfp4",
    "q4_0-imatrix": "q4_0", "q5_0-imatrix": "q5_0", "iq4_nl-imatrix": "iq4_nl", "iq4_xs-imatrix": "iq4_xs",
}  # fmt: skip
# As llama-quantize reads them (tools/quantize/quantize.cpp, QUANT_OPTIONS).
ALIASES = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}

MATRIX = "-imatrix"
EIGHT = 8  # experts, as in Mixtral, for which llama.cpp has rules of its own
FEW_HEADS = 4  # query heads for each key-value head, from which on attn_v is small

# The file types that have rules of their own for all parts.
_FEWEST_BITS = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m")
_FALLBACK = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"),
    **dict.fromkeys(("q2_0", "q2_k", "q3_k", "tq1_0", "tq2_0"), "q4_0"),
    "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
}  # fmt: skip
_EMBEDDING = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs"), "q2_k"),
    **dict.fromkeys(("iq2_s", "iq2_m", "iq3_xxs"), "iq3_s"),
    **dict.fromkeys(("tq1_0", "tq2_0", "q2_0"), "q4_k"),
}
_QUERIES = {"iq3_xs": "iq3_xxs", "iq3_xxs": "iq2_s"}  # and keys
_FUSED = {"q3_k_m": "q4_k", "q3_k_l": "q4_k", "iq3_m": "q4_k", "q4_k_m": "q5_k", "q5_k_m": "q6_k"}
_OUTPUT = {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}
_FIRST_DOWN = {"q2_k_s": "q4_k", "iq3_m": "q4_k", "iq4_nl": "q5_k", "iq4_xs": "q5_k", "q4_k_s": "q5_k"}
_OUTPUT_OF_EIGHT = (
    "q2_k", "iq3_xs", "iq3_xxs", "q3_k_s", "q3_k_m", "iq4_nl", "q4_k_s", "q4_k_m", "iq3_s", "iq3_m", "iq4_xs",
)  # fmt: skip
# Of values shared by few heads, and of others.
_VALUES_SHARED = {"q2_k": "q4_k", "q2_k_s": "q4_k", "iq3_xxs": "q4_k", "iq3_xs": "q4_k", "iq3_s": "q4_k",
                  "iq4_nl": "q5_k", "iq4_xs": "q5_k"}  # fmt: skip
_VALUES = {"q2_k": "q3_k", "iq3_m": "q4_k", "q3_k_l": "q5_k"}


class Tensor(NamedTuple):
    """What the rules ask of a tensor."""

    part: str  # embedding, head, q, k, v, qkv, output, up, down, or "" for another
    columns: int  # elements of a row
    layer: int = 0
    values: int = 0  # its place among the tensors of values
    downs: int = 0  # its place among the MLPs' second projections
    routed: bool = False  # a stack of experts


class Model(NamedTuple):
    """What the rules ask of a model."""

    layers: int
    values: int  # tensors of values, fused ones included
    experts: int  # of a layer
    group: int  # query heads for each key-value head
    is_70b: bool
    is_falcon: bool
    tied: bool  # the embedding is the head


def format_of(tensor: Tensor, file_type: str, model: Model) -> str:
    """Return the format of a tensor that llama-quantize quantises.

    Args:
        tensor: its part and place.
        file_type: one of `FILE_TYPES`.
        model: sizes of the model.

    >>> model = Model(32, 32, 0, 4, False, False, False)
    >>> format_of(Tensor("down", 14336, layer=0, downs=0), "q4_k_m", model)
    'q6_k'
    """
    base = FILE_TYPES[file_type]
    form = _chosen(tensor, file_type.removesuffix(MATRIX), base, model) or base
    if file_type.endswith(MATRIX) and tensor.part == "down":
        form = _of_down_by_matrix(_place(tensor, model), base, model) or base
    if tensor.columns % BLOCKS[form].elements:
        form = _FALLBACK.get(form, form)
    return "float16" if tensor.columns % BLOCKS[form].elements else form


def _chosen(tensor: Tensor, file_type: str, base: str, model: Model) -> str | None:
    """Return the format of a part if it is not the file type's usual one."""
    part = tensor.part
    if part == "head" or (part == "embedding" and model.tied):
        return _of_head(tensor, file_type, base, model)
    if file_type == "mxfp4_moe":
        return "mxfp4" if tensor.routed else "q8_0"
    if part == "embedding":
        return _EMBEDDING.get(file_type)
    if file_type in _FEWEST_BITS:
        return _of_fewest_bits(tensor, file_type, model)
    return _RULES.get(part, _usual)(tensor, file_type, model)


def _usual(tensor: Tensor, file_type: str, model: Model) -> None:
    return None


def _of_fused(tensor: Tensor, file_type: str, model: Model) -> str | None:
    return _FUSED.get(file_type)


def _of_queries(tensor: Tensor, file_type: str, model: Model) -> str | None:
    return _QUERIES.get(file_type)


def _of_keys(tensor: Tensor, file_type: str, model: Model) -> str | None:
    return "q8_0" if model.experts == EIGHT else _QUERIES.get(file_type)


def _of_up(tensor: Tensor, file_type: str, model: Model) -> str | None:
    middle = model.layers // 8 <= tensor.layer < 7 * model.layers // 8
    return "iq3_xxs" if file_type == "iq3_xs" and middle else None


def _of_head(tensor: Tensor, file_type: str, base: str, model: Model) -> str:
    if file_type == "mxfp4_moe" or model.is_falcon or tensor.columns % BLOCKS[base].elements:
        return "q8_0"
    if file_type in _FEWEST_BITS or file_type == "iq3_xxs":
        return "q5_k"
    return base if base == "q8_0" else "q6_k"


def _of_fewest_bits(tensor: Tensor, file_type: str, model: Model) -> str | None:
    more = "iq3_s" if file_type in ("iq2_s", "iq2_m") else "q2_k"
    if tensor.part == "v":
        return "q4_k" if model.group >= FEW_HEADS or model.experts >= FEW_HEADS else more
    if tensor.part == "k" and model.experts == EIGHT:
        return "q4_k"
    if tensor.part == "down":
        return more if tensor.downs < model.layers // 8 else None
    if tensor.part == "output":
        if model.experts == EIGHT:
            return "q5_k"
        return {"iq1_s": "iq2_xxs", "iq1_m": "iq2_xxs", "iq2_s": "iq3_s", "iq2_m": "iq3_s"}.get(file_type)
    return None


def _of_down(tensor: Tensor, file_type: str, model: Model) -> str | None:
    """Return the format of the MLP's second projection."""
    place, count, falcon = _place(tensor, model), model.layers, model.is_falcon
    form = {"q2_k": "q3_k", "q3_k_l": "q4_k" if falcon else "q5_k"}.get(file_type)
    if file_type in ("q4_k_m", "q5_k_m") and _more_bits(place, count):
        form = "q5_k" if falcon and file_type == "q4_k_m" and place >= count // 16 else "q6_k"
    elif file_type == "q3_k_m" and place < count // 16:
        form = "q5_k"
    elif file_type == "q3_k_m":
        form = "q4_k" if not falcon or _more_bits(place, count) else None
    elif file_type == "iq3_m" and model.experts == EIGHT and _more_bits(place, count):
        form = "q4_k"
    elif place < count // 8 and not (falcon and file_type == "q4_k_s"):
        form = form or _FIRST_DOWN.get(file_type)
    return form


def _of_down_by_matrix(place: int, base: str, model: Model) -> str | None:
    """Return the format of the MLP's second projection, quantised by an importance matrix."""
    return {"q4_0": "q4_1", "q5_0": "q5_1"}.get(base) if place < model.layers // 8 else None


def _place(tensor: Tensor, model: Model) -> int:
    return tensor.layer if model.experts > 1 else tensor.downs


def _of_output(tensor: Tensor, file_type: str, model: Model) -> str | None:
    """Return the format of attention's last projection."""
    if model.is_falcon:
        return "q4_k" if file_type == "q3_k_l" else None
    if model.experts == EIGHT:
        return "q5_k" if file_type in _OUTPUT_OF_EIGHT else None
    return _OUTPUT.get(file_type)


def _of_values(tensor: Tensor, file_type: str, model: Model) -> str | None:
    """Return the format of the values' projection, which loses most by quantisation."""
    place, base = tensor.values, FILE_TYPES[file_type]
    if model.experts == EIGHT:
        return "q8_0"
    shared = _VALUES_SHARED.get(file_type) if model.group >= FEW_HEADS else None
    form = shared or _VALUES.get(file_type)
    if file_type == "q3_k_m":
        form = "q5_k" if place < 2 else "q4_k"
    elif file_type in ("q4_k_m", "q5_k_m") and _more_bits(place, model.values):
        form = "q6_k"
    elif file_type == "q4_k_s" and place < 4:
        form = "q5_k"
    return "q5_k" if model.is_70b and (form or base) in ("q3_k", "q4_k") else form


def _more_bits(place: int, count: int) -> bool:
    return place < count // 8 or place >= 7 * count // 8 or (place - count // 8) % 3 == 2


_RULES: dict[str, Callable[[Tensor, str, Model], str | None]] = {
    "qkv": _of_fused,
    "v": _of_values,
    "q": _of_queries,
    "k": _of_keys,
    "output": _of_output,
    "up": _of_up,
    "down": _of_down,
}
