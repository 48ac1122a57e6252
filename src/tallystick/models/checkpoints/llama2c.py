"""Load llama2.c's first format as a Llama decoder.

Its queries and keys rotate neighbouring channels, as Meta's files do. Their rows are reordered
for Hugging Face's convention.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from tallystick.files.local import opened
from tallystick.formats.llama2c import ANGLES, HEADER, layout_of
from tallystick.models.checkpoints.lazy_tensors import Held, in_memory, made, mapping
from tallystick.models.config import DecoderConfig
from tallystick.models.families import config_of


def read(path: Path) -> tuple[DecoderConfig, dict[str, Held]]:
    """Return a file's config, as a Llama's, and its tensors.

    Raises:
        BadInput: if the file's size does not match its header.
    """
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
    """Reorder each head's rows from pairs to halves: all first of the pairs, then all second."""
    return tensor.view(heads, -1, 2, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
