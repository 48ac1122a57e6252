"""Weights as llama-quantize stores them: a GGUF file type mixes block formats by tensor and layer.

The rules are those of llama.cpp's llama-quant.cpp without an importance matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from tallystick.core.dtypes import BLOCKS
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, grouped

# File type -> the block format of most of its matrices.
FILE_TYPES = {
    "q2_k": "q2_k", "q3_k_s": "q3_k", "q3_k_m": "q3_k", "q3_k_l": "q3_k", "q4_0": "q4_0", "q4_1": "q4_1", "q4_k_s": "q4_k",
    "q4_k_m": "q4_k", "q5_0": "q5_0", "q5_1": "q5_1", "q5_k_s": "q5_k", "q5_k_m": "q5_k", "q6_k": "q6_k", "q8_0": "q8_0",
}  # fmt: skip
ALIASES = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}  # as llama-quantize reads them

MOST_LAYERS = 10_000
EIGHT = 8  # experts, as in Mixtral, for which llama.cpp has rules of its own

# If a row is not a whole number of blocks.
_FALLBACK = {"q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0"}
_KEPT = ("position_embedding", "router", "norm", "conv")  # roles whose tensors are float32 in a GGUF file
_PARTS = {
    "qkv": re.compile(r"\.(qkv_proj|query_key_value|c_attn|Wqkv|qkv|W_pack|att_proj)\.weight$"),
    "v": re.compile(r"\.(v_proj|value|wv|v|kv_b_proj)\.weight$"),
    "k": re.compile(r"\.(k_proj|key|wk|k)\.weight$"),
    "output": re.compile(r"\.(o_proj|out_proj|c_proj|dense|wo|attn_out)\.weight$"),
}
_DOWN = re.compile(r"\.(down_proj|c_proj|w2|fc2|fc_out|dense_4h_to_h|ff_out|wo)(\.weight)?$")
_FEW_HEADS = 4  # query heads for each key-value head, from which on attn_v is small


class _Model(NamedTuple):
    """What the rules ask of a model."""

    attention: dict[int, int]  # layer -> its place among the layers with attention
    down: dict[int, int]  # layer -> its place among the layers with an MLP
    experts: int
    group: int  # query heads for each key-value head
    is_70b: bool
    tied: bool  # the embedding is the head


def as_gguf(ledger: Ledger, file_type: str) -> Ledger:
    """Return the ledger with each tensor in the block format that a GGUF file has for it.

    Args:
        ledger: the model.
        file_type: one of `FILE_TYPES`.
    """
    model = _model(ledger)
    entries = tuple(one for entry in ledger.rolled for one in _split(entry, file_type, model))
    return replace(ledger, rolled=entries)


def _split(entry: Entry, file_type: str, model: _Model) -> Iterator[Entry]:
    """Yield the entry in its format; a stack in runs of layers with one format each."""
    if entry.buffer or not entry.unique:
        yield entry
        return
    entry = entry._replace(packed=None)
    if not entry.axes:
        yield entry._replace(dtype=_format(entry, 0, file_type, model))
        return
    (start, length), *inner = entry.axes
    layers = range(int(start), int(start + length))
    for form, run in groupby(layers, key=lambda layer: _format(entry, layer, file_type, model)):
        first, *rest = run
        yield entry._replace(dtype=form, axes=(Axis(first, 1 + len(rest)), *inner))


def _format(entry: Entry, layer: int, file_type: str, model: _Model) -> str:
    if len(entry.shape) < 2 or entry.role in _KEPT:
        return "float32"
    base, columns = FILE_TYPES[file_type], int(entry.shape[-1])
    if entry.role == "head" or (entry.role == "token_embedding" and model.tied):
        if columns % BLOCKS[base].elements:
            return "q8_0"
        return base if base == "q8_0" else "q6_k"
    form = _mixed(_part_of(entry), layer, file_type, model) or base
    if columns % BLOCKS[form].elements:
        form = _FALLBACK.get(form, form)
    return "float16" if columns % BLOCKS[form].elements else form


def _part_of(entry: Entry) -> str:
    if entry.role in ("mlp", "experts"):
        return "down" if _DOWN.search(entry.name) else ""
    return next((part for part, names in _PARTS.items() if names.search(entry.name)), "")


def _mixed(part: str, layer: int, file_type: str, model: _Model) -> str | None:
    """Return the format of a part if it is not the file type's usual one."""
    if part == "qkv":
        return {"q3_k_m": "q4_k", "q3_k_l": "q4_k", "q4_k_m": "q5_k", "q5_k_m": "q6_k"}.get(file_type)
    if part == "v":
        return _of_values(layer, file_type, model)
    if part == "down":
        return _of_down(model.down[layer], len(model.down), file_type)
    if model.experts == EIGHT:
        few_bits = file_type in ("q2_k", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m")
        return {"k": "q8_0", "output": "q5_k" if few_bits else None}.get(part)
    return {"q2_k": "q3_k", "q3_k_m": "q4_k", "q3_k_l": "q5_k"}.get(file_type) if part == "output" else None


def _of_down(place: int, count: int, file_type: str) -> str | None:
    """Return the format of the MLP's second projection."""
    if file_type in ("q4_k_m", "q5_k_m"):
        return "q6_k" if _more_bits(place, count) else None
    if file_type == "q3_k_m":
        return "q5_k" if place < count // 16 else "q4_k"
    if file_type == "q4_k_s":
        return "q5_k" if place < count // 8 else None
    return {"q2_k": "q3_k", "q3_k_l": "q5_k"}.get(file_type)


def _of_values(layer: int, file_type: str, model: _Model) -> str | None:
    """Return the format of the values' projection, which loses most by quantisation."""
    if model.experts == EIGHT:
        return "q8_0"
    place, count = model.attention[layer], len(model.attention)
    form = None
    if file_type == "q2_k":
        form = "q4_k" if model.group >= _FEW_HEADS else "q3_k"
    elif file_type == "q3_k_m":
        form = "q5_k" if place < 2 else "q4_k"
    elif file_type == "q3_k_l":
        form = "q5_k"
    elif file_type in ("q4_k_m", "q5_k_m") and _more_bits(place, count):
        form = "q6_k"
    elif file_type == "q4_k_s" and place < 4:
        form = "q5_k"
    return "q5_k" if model.is_70b and (form or FILE_TYPES[file_type]) in ("q3_k", "q4_k") else form


def _more_bits(place: int, count: int) -> bool:
    return place < count // 8 or place >= 7 * count // 8 or (place - count // 8) % 3 == 2


def _model(ledger: Ledger) -> _Model:
    parts: dict[str, set[int]] = {"v": set(), "down": set()}
    experts = 0
    for entry in ledger.parameters:
        part = _part_of(entry)
        start, length = entry.axes[0] if entry.axes else Axis(0, 1)
        if length > MOST_LAYERS:
            raise BadInput(
                f"{ledger.source} has {grouped(int(length))} layers: GGUF formats are mixed by layer, up to {MOST_LAYERS:,}",
                code="too-large",
            )
        layers = range(int(start), int(start + length))
        if part in ("v", "qkv"):
            parts["v"].update(layers)
        if part == "down":
            parts["down"].update(layers)
        if entry.role == "experts":
            experts = int(entry.axes[1].length) if len(entry.axes) > 1 else int(entry.shape[0])
    heads = ledger.model.attending[0].heads if ledger.model.attending else None
    return _Model(
        {layer: place for place, layer in enumerate(sorted(parts["v"]))},
        {layer: place for place, layer in enumerate(sorted(parts["down"]))},
        experts,
        int(heads.queries) // int(heads.keys) if heads is not None and heads.keys else 1,
        len(parts["down"]) == 80 and ledger.architecture == "llama",
        not any(entry.role == "head" and entry.unique for entry in ledger.parameters),
    )
