"""Bytes of quantised weights are those of the tensors that torchao makes."""

import pytest

from tallystick import Entry
from tallystick.answers.memory.number_formats import bytes_of


def matrix(rows, columns):
    return Entry("h.0.mlp.up.weight", (rows, columns), "mlp", "bfloat16", "h.0.mlp.up.weight", rows * columns)


@pytest.mark.parametrize("form", ["int8", "fp8"])
def test_eight_bits_as_torchao_stores_them(form):
    from torch import nn
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    model = nn.Sequential(nn.Linear(64, 32, bias=False))
    quantize_(model, {"int8": Int8WeightOnlyConfig, "fp8": Float8WeightOnlyConfig}[form]())
    weight = model[0].weight
    held = sum(getattr(weight, name).nbytes for name in weight.__tensor_flatten__()[0])
    assert bytes_of(matrix(32, 64), form) == held


def test_four_bits_by_hand():
    """Scales: int4 has 32 bits for 128 elements, nf4 8 for 64 and 32 for 256 of those."""
    columns = 130 * 128
    assert bytes_of(matrix(3, columns), "int4") == 3 * columns // 2 + 3 * 130 * 4
    assert bytes_of(matrix(64, columns), "nf4") == 64 * columns // 2 + 64 * 260 + 64 * 260 // 256 * 4
