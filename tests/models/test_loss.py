"""The loss in chunks beside the plain one: PyTorch's own where it has it, written out over all
logits where it has not.
"""

from __future__ import annotations

import warnings
from functools import partial

import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from decoders import KINDS, VOCABULARY
from tallystick.errors import BadInput
from tallystick.models import Decoder
from tallystick.models.loss import _one_node, linear_cross_entropy

TOKENS, WIDTH, ROWS = 23, 8, 50
CHUNK = 7 * ROWS * 4  # bytes of seven tokens' logits: chunks that do not divide the tokens


def drawn(dtype=torch.float32, *, ignored=(), tokens=TOKENS, width=WIDTH, rows=ROWS):
    torch.manual_seed(0)
    x = torch.randn(tokens, width, dtype=dtype).requires_grad_()
    weight = torch.randn(rows, width, dtype=dtype).requires_grad_()
    targets = torch.randint(rows, (tokens,))
    targets[list(ignored)] = -100
    return x, weight, targets


def written_out(x, weight, targets, *, z_loss=0.0, label_smoothing=0.0, scale=1.0, cap=None):
    logits = x @ weight.T * scale
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    counted = targets != -100
    loss = F.cross_entropy(logits, targets, label_smoothing=label_smoothing)
    return loss + z_loss * logits.logsumexp(-1)[counted].square().mean()


def with_gradients(loss, x, weight, targets, **options):
    value = loss(x, weight, targets, **options)
    return value, *torch.autograd.grad(value, (x, weight))


CASES = {
    "plain": {},
    "smoothed": {"label_smoothing": 0.1},
    "z-loss": {"z_loss": 0.03},
    "capped": {"cap": 2.0},
    "scaled": {"scale": 0.3},
    "all": {"label_smoothing": 0.1, "z_loss": 0.03, "cap": 2.0, "scale": 0.3},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("ignored", [(), (0, 5, 22)])
@pytest.mark.parametrize("chunk", [CHUNK, 1, 1 << 27])
def test_loss_and_gradients_are_those_of_all_logits(options, ignored, chunk):
    found = with_gradients(linear_cross_entropy, *drawn(ignored=ignored), chunk=chunk, **options)
    wanted = with_gradients(written_out, *drawn(ignored=ignored), **options)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_gradients_are_those_of_small_steps(options):
    x, weight, targets = drawn(torch.float64, ignored=(3,), tokens=7, width=3, rows=11)  # few: each is a step
    chunk = 3 * 11 * 8  # bytes of three tokens' logits
    assert torch.autograd.gradcheck(
        lambda x, weight: linear_cross_entropy(x, weight, targets, chunk=chunk, **options), (x, weight)
    )


def test_logits_far_apart_overflow_nothing():
    x, weight, targets = drawn()
    found = with_gradients(linear_cross_entropy, x, weight, targets, scale=1e3)
    wanted = with_gradients(written_out, x, weight, targets, scale=1e3)
    for one, other in zip(found, wanted, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-5)


def test_where_no_target_counts_there_is_no_mean():
    x, weight, targets = drawn(ignored=range(TOKENS))
    assert linear_cross_entropy(x, weight, targets).isnan()
    assert F.cross_entropy(x @ weight.T, targets).isnan()


def test_what_comes_after_the_loss_scales_its_gradients():
    found = with_gradients(lambda *of: linear_cross_entropy(*of, chunk=CHUNK) / 4, *drawn())
    wanted = with_gradients(lambda *of: written_out(*of) / 4, *drawn())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_under_autocast_products_are_rounded_and_sums_are_not():
    x, weight, targets = drawn()
    with torch.autocast("cpu", torch.bfloat16):
        found = with_gradients(linear_cross_entropy, x, weight, targets, chunk=CHUNK)
    assert [one.dtype for one in found] == [torch.float32] * 3
    rounded = (x @ weight.T).to(torch.bfloat16).float()
    assert found[0].item() == pytest.approx(F.cross_entropy(rounded, targets).item(), rel=2e-3)
    for one, other in zip(found, with_gradients(written_out, x, weight, targets), strict=True):
        torch.testing.assert_close(one, other, atol=0.01 * other.abs().max().item(), rtol=0)


def test_a_model_in_sixteen_bits_gets_gradients_in_sixteen_bits():
    x, weight, targets = drawn(torch.bfloat16)
    found = with_gradients(linear_cross_entropy, x, weight, targets, chunk=CHUNK)
    assert [one.dtype for one in found] == [torch.float32, torch.bfloat16, torch.bfloat16]


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.elements = max(self.elements, out.numel())
        return out


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_no_more_logits_are_made_at_once_than_a_chunk_has(options):
    x, weight, targets = drawn()
    with Largest() as plain:
        written_out(x, weight, targets, **options).backward()
    assert plain.elements == TOKENS * ROWS
    with Largest() as chunked:
        linear_cross_entropy(x, weight, targets, chunk=WIDTH * ROWS * 4, **options).backward()
    assert chunked.elements == WIDTH * ROWS  # eight tokens' logits, as many as the weight has elements


def test_without_gradients_it_makes_none():
    x, weight, targets = drawn()
    with torch.no_grad(), Largest() as made:
        loss = linear_cross_entropy(x, weight, targets, chunk=ROWS * 4)
    assert made.elements <= WIDTH * ROWS
    assert not loss.requires_grad
    torch.testing.assert_close(loss, F.cross_entropy(x @ weight.T, targets))


@pytest.mark.xdist_group("compiled")  # what generates code is imported once
@pytest.mark.parametrize("autocast", [False, True])
def test_compiled_it_is_one_graph_and_the_same(autocast):
    x, weight, targets = drawn(ignored=(1,))

    def loss(x, weight, targets):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return linear_cross_entropy(x, weight, targets, chunk=CHUNK, **CASES["all"])

    wanted = with_gradients(loss, x, weight, targets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for own in ("`torch.jit.script_method` is deprecated", ".*Function'> should not be instantiated"):
            warnings.filterwarnings("ignore", own)  # what torch.compile itself does
        found = with_gradients(torch.compile(loss, fullgraph=True), x, weight, targets)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3 if autocast else 1e-6, rtol=1e-2 if autocast else 1e-5)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_the_compiler_takes_for_one_node_is_what_it_says_it_is(dtype, keep):
    """Shapes, dtypes, gradients, and that it shares and changes nothing: as torch checks
    operations.
    """
    x, weight, targets = drawn(dtype)
    options = (-100, 0.03, 0.1, 0.3, 2.0, CHUNK)
    checked = ("test_schema", "test_faketensor") + (
        ("test_autograd_registration", "test_aot_dispatch_static") if keep else ()
    )
    torch.library.opcheck(_one_node, (x, weight, targets, torch.bfloat16, keep, *options), test_utils=checked)


def test_compiled_it_is_one_node():
    """So that no compiler holds what the chunks add to the weight's gradient until it adds them
    up.
    """
    graphs = []

    def look(graph, _):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    torch.compile(partial(linear_cross_entropy, chunk=CHUNK), fullgraph=True, backend=look)(*drawn())
    assert [called for called in graphs[0] if "tallystick" in str(called)] == [_one_node._opoverload]
    assert not any("matmul" in str(called) for called in graphs[0])


def test_compiled_without_gradients_it_makes_none():
    x, weight, targets = drawn()
    with torch.no_grad():
        loss = torch.compile(linear_cross_entropy, fullgraph=True, backend="aot_eager")(x, weight, targets)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, F.cross_entropy(x @ weight.T, targets))


# -- in a decoder ---------------------------------------------------------------------------------


def decoder_and_text(*, tied=True):
    torch.manual_seed(0)
    two = {"num_hidden_layers": 2, "tie_word_embeddings": tied}  # one sees all tokens, one a window
    decoder = Decoder.of({**KINDS["gemma2"], "model_type": "gemma2", **two})
    tokens = torch.randint(VOCABULARY, (2, 31))
    return decoder, tokens[:, :-1], tokens[:, 1:]


def gradients(decoder):
    return {name: one.grad.clone() for name, one in decoder.named_parameters()}


def from_all_logits(decoder, inputs, targets):
    return F.cross_entropy(decoder(inputs).flatten(0, 1), targets.flatten())


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, one in found.items():
        torch.testing.assert_close(
            one, wanted[name], atol=1e-6, rtol=1e-4, msg=lambda said, name=name: f"{name}: {said}"
        )


@pytest.mark.xdist_group("compiled")
@pytest.mark.parametrize(
    ("tied", "compiled", "recompute"),
    [(True, False, False), (False, False, False), (True, False, True), (True, True, False)],
    ids=["tied", "untied", "recomputed", "compiled"],
)
def test_a_decoder_gets_the_gradients_of_both_uses_over_several_batches(tied, compiled, recompute):
    decoder, inputs, targets = decoder_and_text(tied=tied)
    decoder.recompute = recompute
    for row in range(2):
        from_all_logits(decoder, inputs[row : row + 1], targets[row : row + 1]).backward()
    wanted = gradients(decoder)
    decoder.zero_grad()
    torch.compiler.reset()  # what others compiled would make sizes symbols, whose algebra takes four times as long
    # test_decoder_compiled.py generates code for a run's steps, which have this loss in them.
    called = torch.compile(decoder, fullgraph=True, backend="aot_eager") if compiled else decoder
    for row in range(2):
        called(inputs[row : row + 1], targets[row : row + 1]).backward()
    assert_same(gradients(decoder), wanted)


def test_a_tied_gradient_is_one_buffer():
    decoder, inputs, targets = decoder_and_text()
    shapes: list[torch.Size] = []

    class Made(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "embedding_dense_backward" in str(func):
                shapes.append(args[0].shape)
            return func(*args, **(kwargs or {}))

    with Made():
        decoder(inputs, targets).backward()
    assert not shapes
    with Made():
        from_all_logits(decoder, inputs, targets).backward()
    assert shapes


def test_a_hook_on_the_embedding_is_called_and_a_frozen_matrix_stays_so():
    decoder, inputs, targets = decoder_and_text()
    wanted = decoder(inputs, targets)
    wanted.backward()
    expected = gradients(decoder)
    decoder.zero_grad()
    called: list[int] = []
    hook = decoder.embedding.register_forward_hook(lambda *_: called.append(1))
    decoder(inputs, targets).backward()
    hook.remove()
    assert called == [1]
    assert_same(gradients(decoder), expected)
    decoder.embedding.weight.requires_grad_(False)
    decoder.zero_grad()
    torch.testing.assert_close(decoder(inputs, targets), wanted)
    decoder(inputs, targets).backward()
    assert decoder.embedding.weight.grad is None
    assert decoder.layers[0].mlp.up_proj.weight.grad is not None


def test_an_adapter_around_the_head_is_not_left_out_of_the_loss():
    decoder, inputs, targets = decoder_and_text(tied=False)
    adapted = inject_adapter_in_model(LoraConfig(target_modules=["head"]), decoder)
    with pytest.raises(BadInput, match=r"the head is a peft.*Linear.*without targets"):
        adapted(inputs, targets)
    assert adapted(inputs).requires_grad
