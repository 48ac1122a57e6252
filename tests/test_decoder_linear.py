"""One token at a time in sixteen bits: the kernel for vectors says what the one for matrices says."""

import pytest
import torch
from torch.nn import functional as F
from torchao.quantization import Int8WeightOnlyConfig, quantize_

from tallystick.models.linear import Linear


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_lone_token_is_multiplied_as_in_double_precision(dtype, bias):
    torch.manual_seed(0)
    layer = Linear(96, 40, bias=bias, dtype=dtype)
    token = torch.randn(1, 1, 96, dtype=dtype)
    exact = F.linear(token.double(), layer.weight.double(), None if bias is False else layer.bias.double())
    said = layer(token)
    assert said.shape == (1, 1, 40)
    assert said.dtype == dtype
    assert (said - exact).abs().max() <= 2 * torch.finfo(dtype).eps * exact.abs().max()


def test_gradients_of_a_lone_token_reach_weight_bias_and_input():
    torch.manual_seed(0)
    layer = Linear(6, 4, dtype=torch.bfloat16)
    token = torch.randn(1, 1, 6, dtype=torch.bfloat16, requires_grad=True)
    layer(token).sum().backward()
    torch.testing.assert_close(layer.weight.grad, token.detach().view(1, 6).expand(4, 6))
    torch.testing.assert_close(layer.bias.grad, torch.ones(4, dtype=torch.bfloat16))
    torch.testing.assert_close(token.grad.view(-1), layer.weight.detach().sum(0), atol=0.01, rtol=0.01)


def test_a_quantised_weight_is_multiplied_by_what_it_knows():
    """torchao's tensors say what `F.linear` does to them, and not what `torch.mv` does."""
    torch.manual_seed(0)
    layer = Linear(64, 32, bias=False, dtype=torch.bfloat16)
    token = torch.randn(1, 1, 64, dtype=torch.bfloat16)
    before = layer(token)
    quantize_(layer, Int8WeightOnlyConfig())
    assert layer.weight.__class__ is not torch.nn.Parameter
    torch.testing.assert_close(layer(token), before, atol=0.05, rtol=0.05)
