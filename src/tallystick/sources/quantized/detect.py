"""Find the packed quantised weights of a checkpoint, with their scales and zero points.

A library packs a weight into a few tensors, one of which has a distinctive name. That name
identifies the scheme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.core.budget import current
from tallystick.core.dtypes import size_in_bytes
from tallystick.formats.weights_file import StoredTensor, Weight
from tallystick.sources.quantized import codebook, narrow_floats, packed_integers, scaled_values, stated_shapes
from tallystick.sources.quantized.packed_weight import PackedWeight, Peek


class FoundPacked(NamedTuple):
    """The packed weights among stored tensors."""

    weights: Mapping[str, Weight] = {}  # by the stored name of the tensor that holds the values
    auxiliary: frozenset[str] = frozenset()  # names of their scales, zero points and tables


class _Scheme(NamedTuple):
    mark: str  # the ending of the tensor name that identifies the scheme
    values: str  # the ending of the tensor with the values, in place of the mark
    name: str
    read: Callable[[PackedWeight], Weight | None]  # returns None if the tensors are something else
    auxiliary: tuple[str, ...]  # the endings of the other tensors


_NOTED_BY_HQQ = (
    "shape", "nbits", "group_size", "axis", "packing", "unpack_view_dtype", "view_as_float", "quant_scale", "quant_zero",
    "compute_dtype", "offload_meta", "encoded_state_dict", "stores_quant_config", "channel_wise", "optimize", "round_zero",
)  # fmt: skip
_SCALES_OF_HQQ = tuple(  # also the scales of quantised scales; older files put them in a `meta`
    f"{meta}.{name}"
    for meta in ("", ".meta")
    for name in (
        "scale",
        "zero",
        "scale_q",
        "zero_q",
        *(f"meta_{of}.{part}" for of in ("scale", "zero") for part in ("scale", "zero")),
    )
)
_QUANTO = (".weight._scale", ".weight._shift", ".input_scale", ".output_scale")

_SCHEMES = (
    _Scheme(
        ".quant_map", "", "bitsandbytes", stated_shapes.bitsandbytes,
        (".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
         ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4"),
    ),
    _Scheme(".SCB", ".weight", "bitsandbytes", scaled_values.llm_int8, (".SCB", ".weight_format")),
    _Scheme(
        ".qweight", ".qweight", "GPTQ", packed_integers.gptq_or_awq,
        (".qzeros", ".scales", ".scaled_zeros", ".g_idx", ".weight_global_scale", ".act_global_scale", ".forward_hadamard_matrix",
         ".backward_hadamard_matrix"),
    ),
    _Scheme(
        ".weight_packed", ".weight_packed", "compressed-tensors", packed_integers.compressed_tensors,
        (".weight_scale", ".weight_shape", ".weight_zero_point", ".weight_g_idx", ".weight_global_scale"),
    ),
    _Scheme("_blocks", "_blocks", "MXFP4", narrow_floats.mxfp4, ("_scales",)),
    _Scheme(".scales", ".weight", "MLX", packed_integers.mlx, (".scales", ".biases", ".qbiases")),
    _Scheme(".weight_scales", ".weight", "EETQ", scaled_values.eetq, (".weight_scales",)),
    _Scheme(".embedding_scale", ".embedding_quantized", "Gemma", scaled_values.gemma_embedding, (".embedding_scale",)),
    _Scheme(".W_q", ".W_q", "HQQ", stated_shapes.hqq, (*_SCALES_OF_HQQ, *(f".{note}" for note in _NOTED_BY_HQQ))),
    _Scheme(".weight._data", ".weight._data", "quanto", stated_shapes.quanto, _QUANTO),
    _Scheme(".weight._data._data", ".weight._data._data", "quanto", stated_shapes.quanto, _QUANTO),
    _Scheme(".codebooks", ".codes", "AQLM", codebook.aqlm, (".codebooks", ".scales")),
    _Scheme(
        ".centroids.weight", ".indices", "VPTQ", codebook.vptq,
        (".centroids.weight", ".res_centroids.weight", ".outlier_centroids.weight", ".outlier_indices", ".res_indices",
         ".perm", ".weight_scale", ".weight_bias"),
    ),
    _Scheme(".tables2", ".weight", "HIGGS", codebook.higgs, (".scales", ".tables", ".tables2")),
    _Scheme(".dense_weights", ".dense_weights", "SpQR", codebook.spqr, (".row_offsets", ".col_vals", ".in_perm")),
    _Scheme(
        ".q_weight", ".q_weight", "EXL2", codebook.exl2,
        (".q_scale", ".q_scale_max", ".q_groups", ".q_invperm", ".q_perm", ".q_group_map"),
    ),
    _Scheme(".trellis", ".trellis", "EXL3", codebook.exl3, (".suh", ".svh", ".su", ".sv", ".mcg", ".mul1")),
    _Scheme("_scale_inv", "", "FP8", scaled_values.scaled, ("_scale_inv",)),
    _Scheme("_scale", "", "FP8", scaled_values.scaled, ("_scale", "_scale_2", "_zero_point")),
    _Scheme("_qdata", "_qdata", "torchao", stated_shapes.torchao, ("_scale", "_zero_point", "_scale_and_zero", "_per_tensor_scale",
            "_act_pre_scale", "_act_quant_scale", "_act_quant_zero_point", "_act_per_tensor_scale")),
)  # fmt: skip

_NAMED, _MARKED = 100, 270  # bytes of Python memory per looked-up tensor and per packed weight
_MARKS = tuple(scheme.mark for scheme in _SCHEMES)


def find_packed(
    tensors: Sequence[StoredTensor], quantization: Mapping[str, Any], metadata: Mapping[str, str], peek: Peek
) -> FoundPacked:
    """Return the packed weights among the tensors of a checkpoint.

    Args:
        tensors: all stored tensors.
        quantization: the config's quantisation settings.
        metadata: the free text in the files' headers.
        peek: returns the bytes of a small tensor; called only for tensors that note a shape.

    Raises:
        BadInput: if the parts of a weight contradict each other.
    """
    marked = [tensor.name for tensor in tensors if tensor.name.endswith(_MARKS)]
    if not marked:  # most checkpoints
        return FoundPacked()
    budget = current()
    budget.step(10 * len(marked))
    budget.keep(_NAMED * len(tensors) + _MARKED * len(marked), "its packed weights")
    by_name = {tensor.name: tensor for tensor in tensors}
    weights: dict[str, Weight] = {}
    auxiliary: set[str] = set()
    for name in marked:
        for scheme in _SCHEMES:
            if not name.endswith(scheme.mark):
                continue
            stem = name.removesuffix(scheme.mark)
            values = stem + scheme.values
            if values in weights or values not in by_name:
                continue
            values = by_name[values].name  # the name's existing string object, to save memory
            weight = scheme.read(PackedWeight(stem, by_name, peek, quantization, metadata))
            if weight is not None:
                _, dtype, shape, *_ = by_name[values]
                stored = math.prod(shape)
                weights[values] = weight._replace(
                    scheme=weight.scheme or scheme.name, stored=stored, bytes=size_in_bytes(stored, dtype)
                )
                auxiliary.update(by_name[stem + end].name for end in scheme.auxiliary if stem + end in by_name)
    budget.keep(-_NAMED * len(tensors), "its packed weights")
    return FoundPacked(weights, frozenset(auxiliary))


def quantisation_in(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config's quantisation settings, as transformers or mlx-lm write them."""
    found = next((config[key] for key in ("quantization", "quantization_config") if config.get(key)), None)
    return found if isinstance(found, Mapping) else {}
