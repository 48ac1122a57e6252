"""llama2.c's first format: seven integers, then every tensor in float32, one kind after the other.

It is how the small TinyStories models are published (``stories15M.bin``). Each kind has all its layers in a row. A
vocabulary size below zero says that the classifier is stored too, at the end; above zero it is the embedding. Queries
and keys turn neighbouring channels, as Meta's own files have it: their rows are put into Hugging Face's order.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.models.config import DecoderConfig
from tallystick.models.families import config_of
from tallystick.models.stored import Held, in_memory, made, mapping
from tallystick.sources.files import open_regular, refuse_pointer

_HEADER = struct.Struct("<7i")
_LATER = 0x616B3432  # "ak42", how the later versions begin
_LARGEST = 1 << 24  # of a size: what lies above is no header


class _Kind(NamedTuple):
    """Tensors that follow one another: those of all layers, or one."""

    name: str  # Hugging Face's
    shape: tuple[int, ...]
    turned: int = 0  # heads whose channels are to be put in order


def read(path: Path) -> tuple[DecoderConfig, dict[str, Held]]:
    """The config of a file as that of a Llama, and its tensors; `BadInput` where its size is not what it says."""
    file, size = open_regular(path)
    with file:
        start = file.read(max(_HEADER.size, 32))
    refuse_pointer(path, start)
    if int.from_bytes(start[:4], "little") == _LATER:
        raise BadInput(f"{path} is a later version of llama2.c's files: only its first, without a version, is read")
    if len(start) < _HEADER.size:
        raise BadInput(f"{path} is no checkpoint: {size} bytes, too short for llama2.c's header")
    d, inner, layers, heads, kv_heads, vocabulary, context = _HEADER.unpack(start[: _HEADER.size])
    tied, vocabulary = vocabulary > 0, abs(vocabulary)
    sizes = (d, inner, layers, heads, kv_heads, vocabulary, context)
    if not all(0 < one < _LARGEST for one in sizes) or d % heads or heads % kv_heads:
        raise BadInput(f"{path} is no checkpoint that is known: neither safetensors, nor of torch.save, nor llama2.c's")
    keys = d // heads * kv_heads
    kinds = [
        _Kind("model.embed_tokens.weight", (vocabulary, d)),
        _Kind("model.layers.{}.input_layernorm.weight", (d,)),
        _Kind("model.layers.{}.self_attn.q_proj.weight", (d, d), heads),
        _Kind("model.layers.{}.self_attn.k_proj.weight", (keys, d), kv_heads),
        _Kind("model.layers.{}.self_attn.v_proj.weight", (keys, d)),
        _Kind("model.layers.{}.self_attn.o_proj.weight", (d, d)),
        _Kind("model.layers.{}.post_attention_layernorm.weight", (d,)),
        _Kind("model.layers.{}.mlp.gate_proj.weight", (inner, d)),
        _Kind("model.layers.{}.mlp.down_proj.weight", (d, inner)),
        _Kind("model.layers.{}.mlp.up_proj.weight", (inner, d)),
        _Kind("model.norm.weight", (d,)),
        _Kind("", (context, d // heads)),  # cosines, then sines: computed anew
        *([] if tied else [_Kind("lm_head.weight", (vocabulary, d))]),
    ]
    needed = _HEADER.size + 4 * sum(math.prod(one.shape) * (layers if "{}" in one.name else 1) for one in kinds)
    if needed != size:
        raise BadInput(f"{path} has {size:,} bytes, and by llama2.c's header it would have {needed:,}")
    config = config_of(
        {
            "model_type": "llama",
            "vocab_size": vocabulary,
            "hidden_size": d,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "max_position_embeddings": context,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": tied,
        }
    )
    held: dict[str, Held] = {}
    values, done = mapping(path)[_HEADER.size :].view(torch.float32), 0
    for kind in kinds:
        count = math.prod(kind.shape)
        for layer in range(layers if "{}" in kind.name else 1):
            tensor = values[done : done + count].view(kind.shape)
            done += count
            ordered = made(tensor.dtype, kind.shape, partial(_halves, tensor, kind.turned))
            held[kind.name.format(layer)] = ordered if kind.turned else in_memory(tensor)
    del held[""]
    return config, held


def _halves(tensor: Tensor, heads: int) -> Tensor:
    """Each head's rows, which come in pairs, with the first of all pairs before the second of all."""
    return tensor.view(heads, -1, 2, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
