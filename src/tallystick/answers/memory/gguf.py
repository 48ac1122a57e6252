"""Weights as a GGUF file stores them: vectors in float32, matrices as llama-quantize mixes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

from tallystick.answers.memory.gguf_rules import FILE_TYPES, Model, Tensor, format_of
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.errors import BadInput, grouped

MOST_LAYERS = 10_000
# 16-bit file types, and the dtype of their matrices.
FLOAT_TYPES = {"f16": "float16", "bf16": "bfloat16"}
# Roles whose tensors are float32 in a GGUF file (gguf-py's convert_hf_to_gguf.py, prepare_tensors).
_KEPT = ("position_embedding", "router", "norm", "conv")
_PARTS = {
    "qkv": re.compile(r"\.(qkv_proj|query_key_value|c_attn|Wqkv|qkv|W_pack|att_proj|in_proj_qkv)\.weight$"),
    "v": re.compile(r"\.(v_proj|value|wv|v)\.weight$"),
    "k": re.compile(r"\.(k_proj|key|wk|k)\.weight$"),
    "q": re.compile(r"\.(q_proj|query|wq|q)\.weight$"),
    "output": re.compile(r"\.(o_proj|out_proj|c_proj|dense|wo|attn_out)\.weight$"),
}
_DOWN = re.compile(r"\.(down_proj|c_proj|w2|fc2|fc_out|dense_4h_to_h|ff_out|wo)(\.weight)?$")
_SHARED = re.compile(r"shared")
_BIAS = re.compile(r"bias$")
_AS_70B = ("llama", "qwen2")  # whose models of 80 layers are LLM_TYPE_70B, with few KV heads (src/models/)


class _Places(NamedTuple):
    """A model's sizes, and the place of each layer's tensors among those of their part."""

    model: Model
    values: dict[int, int]
    downs: dict[tuple[int, bool], int]  # by layer, and whether the MLP is shared by all tokens


def as_gguf(ledger: Ledger, file_type: str) -> Ledger:
    """Return the ledger with each tensor in the format that a GGUF file has for it.

    A tower for images or audio is in a file of its own, in 16 bits (mmproj).

    Args:
        ledger: the model.
        file_type: one of `FILE_TYPES` or `FLOAT_TYPES`, or torch's name of a 16-bit dtype.
    """
    if file_type not in FILE_TYPES:
        dtype = FLOAT_TYPES.get(file_type, file_type)
        rolled = tuple(entry._replace(dtype=_in_floats(entry, dtype)) for entry in ledger.rolled)
        return replace(ledger, rolled=rolled)
    places, towers = _places(ledger), ledger.model.towers
    formed = partial(_split, file_type=file_type, places=places)
    entries = [
        one
        for entry in ledger.rolled
        for one in (_of_tower(entry) if towers and entry.name.startswith(towers) else formed(entry))
    ]
    return replace(ledger, rolled=tuple(entries))


def _in_floats(entry: Entry, dtype: str) -> str:
    return dtype if len(entry.shape) > 1 and not _BIAS.search(entry.name) else "float32"


def _of_tower(entry: Entry) -> Iterator[Entry]:
    yield entry._replace(packed=None, dtype=_in_floats(entry, "float16"))


def _split(entry: Entry, file_type: str, places: _Places) -> Iterator[Entry]:
    """Yield the entry in its format; a stack in runs of layers with one format each."""
    if entry.buffer and entry.packed is not None:  # scales of another packing: a block has its own
        return
    if entry.buffer or not entry.unique:
        yield entry
        return
    entry = entry._replace(packed=None)
    form = partial(_format, entry, file_type=file_type, places=places)
    if not entry.axes:
        yield entry._replace(dtype=form(layers_of_entry(entry).start))
        return
    inner = entry.axes[1:]
    for dtype, run in groupby(layers_of_entry(entry), key=form):
        first, *rest = run
        yield entry._replace(dtype=dtype, axes=(Axis(first, 1 + len(rest)), *inner))


def _format(entry: Entry, layer: int, file_type: str, places: _Places) -> str:
    if len(entry.shape) < 2 or entry.role in _KEPT or _BIAS.search(entry.name):
        return "float32"
    downs = places.downs.get((layer, bool(_SHARED.search(entry.name))), 0)
    routed = entry.role == "experts"
    tensor = Tensor(part_of(entry), int(entry.shape[-1]), layer, places.values.get(layer, 0), downs, routed)
    return format_of(tensor, file_type, places.model)


def part_of(entry: Entry) -> str:
    """Return the part that a tensor is of, by `tensor_get_category`."""
    if entry.role in ("head", "token_embedding"):
        return "head" if entry.role == "head" else "embedding"
    if entry.role in ("mlp", "experts"):
        return "down" if _DOWN.search(entry.name) else "up"
    return next((part for part, names in _PARTS.items() if names.search(entry.name)), "")


def layers_of_entry(entry: Entry) -> range:
    """Return the numbers of an entry's layers: of a stack, or of a single tensor's name."""
    if entry.axes:
        start, length = entry.axes[0]
        return range(int(start), int(start + length))
    numbers = template_of(entry.name)[1]
    first = int(numbers[0]) if numbers else 0
    return range(first, first + 1)


def _places(ledger: Ledger) -> _Places:
    values: set[int] = set()
    downs: set[tuple[int, bool]] = set()
    experts = last = 0
    for entry in _of_text(ledger):
        if entry.axes and entry.axes[0].length > MOST_LAYERS:
            raise BadInput(
                f"{ledger.source} has {grouped(int(entry.axes[0].length))} layers: GGUF formats are mixed by layer,"
                f" up to {MOST_LAYERS:,}",
                code="too-large",
            )
        part, layers = part_of(entry), layers_of_entry(entry)
        last = max(last, layers.stop)
        if part in ("v", "qkv"):
            values.update(layers)
        if part == "down" and len(entry.shape) > 1 and not _BIAS.search(entry.name):
            downs.update((layer, bool(_SHARED.search(entry.name))) for layer in layers)
        if entry.role == "experts" and len(entry.shape) + len(entry.axes) > 2:
            experts = int(entry.axes[1].length) if len(entry.axes) > 1 else int(entry.shape[0])
    heads = ledger.model.attending[0].heads if ledger.model.attending else None
    group = int(heads.queries) // int(heads.keys) if heads is not None and heads.keys else 1
    kind = ledger.architecture or ""
    tied = not any(entry.role == "head" and entry.unique for entry in ledger.parameters)
    model = Model(
        layers=last,
        values=len(values),
        experts=experts,
        group=group,
        is_70b=last == 80 and kind in _AS_70B and group > 1,
        is_falcon=kind == "falcon",
        tied=tied,
    )
    return _Places(
        model,
        {layer: place for place, layer in enumerate(sorted(values))},
        {key: place for place, key in enumerate(sorted(downs))},
    )


def _of_text(ledger: Ledger) -> Iterable[Entry]:
    towers = ledger.model.towers
    return (entry for entry in ledger.parameters if not (towers and entry.name.startswith(towers)))
