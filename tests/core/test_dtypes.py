"""Bytes of each dtype are torch's."""

import torch

from tallystick.core.dtypes import BITS

SEVERAL_A_BYTE = {"quint4x2": 4, "quint2x4": 2}  # of which torch knows the byte


def test_every_dtype_of_torch_has_its_size():
    sizes = {name: SEVERAL_A_BYTE.get(name, 8 * getattr(torch, name).itemsize) for name in BITS if hasattr(torch, name)}
    assert sizes.keys() >= {"float32", "qint32", "complex32", *SEVERAL_A_BYTE}
    assert sizes == {name: BITS[name] for name in sizes}
