"""Read weights packed by codebooks, grids, trellises or row-dependent bits.

No number of bits applies to each value, so the dtype of such a weight is the scheme's name. A
function returns None if the tensors are something else. It raises `BadInput` for parts that
contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.formats.weights_file import Weight
from tallystick.sources.quantized.packed_weight import PackedWeight, is_size

# Sizes are padded to multiples of these.
PADDED_TO = {"exl2": 32, "exl3": 128}

_SPQR_TILE = 16  # rows and columns of a tile; spqr_quant 0.2 has no kernel for other sizes


def aqlm(parts: PackedWeight) -> Weight | None:
    """Read AQLM: `codes` [out/rows, in/columns, books] index `codebooks`.

    `codebooks` is [books, entries, rows, columns]. aqlm 1.1.7, inference.py, `QuantizedLinear`,
    whose `scales` are one for each group of rows.
    """
    if not parts.has(".codes") or not parts.dtype(".codes").startswith("int"):
        return None
    high, wide, books = parts.shape(".codes", 3)
    of, _, rows, columns = parts.shape(".codebooks", 4)
    if of != books or (parts.has(".scales") and parts.shape(".scales")[:1] != (high,)):
        parts.contradiction(".codes", ".codebooks")
    return Weight((high * rows, wide * columns), "aqlm")


def vptq(parts: PackedWeight) -> Weight | None:
    """Read VPTQ: `indices` [books, ⌈out/vector⌉, packed] index vectors of `centroids`.

    The config notes each layer's sizes. vptq 0.0.5, layers/vqlinear.py, `VQuantLinear`; `perm` and
    `weight_scale` have one number for each input.
    """
    layers = parts.quantization.get("config_for_layers")
    layer_config = layers.get(parts.stem) if isinstance(layers, Mapping) else None
    if not isinstance(layer_config, Mapping) or not parts.has(".indices"):
        return None
    outputs, inputs, lengths = (
        layer_config.get("out_features"),
        layer_config.get("in_features"),
        layer_config.get("vector_lens"),
    )
    if not is_size(outputs) or not is_size(inputs):
        return None
    vector = lengths[1] if isinstance(lengths, list) and len(lengths) == 2 else None
    if is_size(vector) and parts.shape(".indices", 3)[1] != -(-outputs // vector):
        parts.contradiction(".indices")
    for ending in (".perm", ".weight_scale"):
        if parts.has(ending) and parts.shape(ending) != (inputs,):
            parts.contradiction(".indices", ending)
    return Weight((outputs, inputs), "vptq")


def higgs(parts: PackedWeight) -> Weight | None:
    """Read HIGGS: `weight` [out·bits/16, in] in 16-bit words, `scales` [out, in/group].

    `tables2` holds a grid of pairs. transformers 5.23, integrations/higgs.py, `HiggsLinear`.
    """
    if not parts.has(".weight") or parts.dtype(".weight") != "int16":
        return None
    words, inputs = parts.shape(".weight", 2)
    outputs, _ = parts.shape(".scales", 2)
    bits = parts.shape(".tables", 1)[0].bit_length() - 1
    if words * 16 != outputs * bits:
        parts.contradiction(".weight", ".scales", ".tables")
    return Weight((outputs, inputs), "higgs")


def spqr(parts: PackedWeight) -> Weight | None:
    """Read SpQR: `dense_weights` has 64 bits for a row of a tile; the outliers are sparse.

    spqr_quant 0.2, inference.py, `QuantizedLinear`. `row_offsets` has one entry per row and one
    more, and `col_vals` the outliers. `in_perm` packs two inputs in a number. Without `in_perm`
    only the size is known.
    """
    if parts.dtype(".dense_weights") != "int64" or not parts.has(".row_offsets"):
        return None
    size = parts.shape(".dense_weights", 1)[0] * _SPQR_TILE
    rows = parts.shape(".row_offsets", 1)[0] - 1
    columns = 2 * parts.shape(".in_perm", 1)[0] if parts.has(".in_perm") else 0
    return Weight((rows, columns) if rows * columns == size else (size,), "spqr")


def exl2(parts: PackedWeight) -> Weight | None:
    """Read EXL2: `q_weight` [packed, out] with row-dependent bits, `q_scale` [groups, out/8].

    `q_invperm` is [in]. exllamav2 0.3.2, conversion/adaptivegptq.py, `pack`, which pads the outputs
    to a multiple of 32.
    """
    if parts.dtype(".q_weight") != "int32" or not parts.has(".q_invperm"):
        return None
    _, outputs = parts.shape(".q_weight", 2)
    if parts.shape(".q_scale", 2)[1] * 8 != outputs:
        parts.contradiction(".q_weight", ".q_scale")
    return Weight((outputs, parts.shape(".q_invperm", 1)[0]), "exl2")


def exl3(parts: PackedWeight) -> Weight | None:
    """Read EXL3: `trellis` [in/16, out/16, 16·bits] and the signs `suh` [in] and `svh` [out].

    Older files pack the signs as `su` and `sv`. exllamav3, modules/quant/exl3.py, `LinearEXL3`,
    which pads both sizes to multiples of 128.
    """
    signs = {ending: parts.shape(ending, 1)[0] for ending in (".suh", ".svh") if parts.has(ending)}
    if parts.dtype(".trellis") != "int16" or not (signs or parts.has(".su")):
        return None
    wide, high, _ = parts.shape(".trellis", 3)
    if any(signs[ending] != 16 * tiles for ending, tiles in ((".suh", wide), (".svh", high)) if ending in signs):
        parts.contradiction(".trellis", *signs)
    return Weight((16 * high, 16 * wide), "exl3")
