"""One token at a time in sixteen bits: the kernel for vectors says what the one for matrices
says.
"""

import pytest
import torch
from torch.nn import functional as F
from torchao.quantization import Int8WeightOnlyConfig, quantize_

from tallystick.models.layers import kernels
from tallystick.models.layers.linear import Linear


@pytest.fixture(params=kernels.KERNELS, autouse=True)
def kernel(request, monkeypatch):
    """Each kernel in turn, whichever is the fastest here."""
    monkeypatch.setattr(kernels, "_measured", lambda inputs, threads: request.param)
    return request.param


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


def chosen(monkeypatch, kernel):
    """The layer uses that kernel and no other."""
    called = []
    for name, one in kernels.KERNELS.items():
        spy = lambda *arguments, name=name, one=one: called.append(name) or one(*arguments)  # noqa: E731
        monkeypatch.setitem(kernels.KERNELS, name, spy)
    Linear(6, 4, dtype=torch.bfloat16)(torch.ones(1, 1, 6, dtype=torch.bfloat16))
    return called == [kernel]


def test_the_kernel_that_was_chosen_is_called(monkeypatch, kernel):
    assert chosen(monkeypatch, kernel)


# -- the choice, by timings that are made up ------------------------------------------------------


class Clock:
    """A clock that moves only while a way runs, by the seconds that it is given for each turn."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, []

    def __call__(self) -> float:
        return self.now

    def way(self, name, *seconds):
        """A way that takes these seconds, one turn after another, and the last of them for all
        others.
        """
        turns = iter(seconds)

        def run() -> None:
            self.calls.append(name)
            self.now += next(turns, seconds[-1])

        return run


@pytest.mark.parametrize(
    ("linear", "mv", "best"),
    [
        ([1.0], [0.5], "mv"),
        ([0.5], [1.0], "linear"),
        ([1.0], [0.95], "linear"),  # no more than chance: the plain one
        ([9.0, 0.5], [1.0], "linear"),  # slow as it warmed up
        ([0.1, 1.0], [0.5], "mv"),  # fast then alone
        ([1.0, 1.0, 5.0, 1.0], [2.0, 3.0, 3.0, 3.0], "linear"),  # another process came between
    ],
)
def test_the_slower_kernel_is_not_chosen(linear, mv, best):
    clock = Clock()
    ways = {"linear": clock.way("linear", *linear), "mv": clock.way("mv", *mv)}
    assert kernels.fastest(ways, clock) == best
    assert clock.calls == ["linear", "mv"] * (kernels.ROUNDS + 1)


def test_a_length_is_measured_once(monkeypatch):
    monkeypatch.undo()
    kernels._measured.cache_clear()
    measured = []
    monkeypatch.setattr(kernels, "fastest", lambda ways: measured.append([way() for way in ways.values()]) or "mv")
    layers = [Linear(inputs, outputs, dtype=torch.bfloat16) for inputs, outputs in ((6, 4), (6, 8), (4, 6))]
    monkeypatch.setattr(kernels, "PROBE", 6 * 2 * 100)
    for layer in (*layers, *layers):
        layer(torch.ones(1, 1, layer.in_features, dtype=torch.bfloat16))
    kernels._measured.cache_clear()
    assert [said[0].shape for said in measured] == [(1, 100), (1, 150)]
    for plain, vector in measured:  # as many products as a matrix of PROBE bytes has rows
        torch.testing.assert_close(vector, plain)
