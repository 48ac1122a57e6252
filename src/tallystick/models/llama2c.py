"""llama2.c's first format as a decoder reads it.

Queries and keys turn neighbouring channels, as Meta's own files have it: their rows are put into Hugging Face's order.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from tallystick.files.local import opened
from tallystick.formats.llama2c import ANGLES, HEADER, layout_of
from tallystick.models.config import DecoderConfig
from tallystick.models.families import config_of
from tallystick.models.lazy_tensors import Held, in_memory, made, mapping


def read(path: Path) -> tuple[DecoderConfig, dict[str, Held]]:
    """The config of a file as that of a Llama, and its tensors; `BadInput` where its size is not what it says."""
    with opened(path) as file:
        layout = layout_of(file)
    held: dict[str, Held] = {}
    values, done = mapping(path)[HEADER.size :].view(torch.float32), 0
    for name, kind in layout.tensors():
        count = math.prod(kind.shape)
        tensor = values[done : done + count].view(kind.shape)
        done += count
        if name not in ANGLES:
            ordered = made(tensor.dtype, kind.shape, partial(_halves, tensor, kind.turned))
            held[name] = ordered if kind.turned else in_memory(tensor)
    return config_of(layout.config), held


def _halves(tensor: Tensor, heads: int) -> Tensor:
    """Each head's rows, which come in pairs, with the first of all pairs before the second of all."""
    return tensor.view(heads, -1, 2, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
