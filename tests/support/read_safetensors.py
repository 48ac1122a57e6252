"""A safetensors file's names, shapes and dtypes, as its own library and as we read them."""

from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from tallystick.formats.safetensors import read_header
from tallystick.formats.safetensors_json import DTYPES


def by_library(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Names, shapes and dtypes as the format's own library reads them."""
    with safe_open(path, "pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        return {name: (tuple(one.get_shape()), DTYPES[one.get_dtype()]) for name, one in slices.items()}


def by_us(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    return {tensor.name: (tensor.shape, tensor.dtype) for tensor in read_header(path).tensors}
