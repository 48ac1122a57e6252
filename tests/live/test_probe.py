"""The probe tells which uses of a tied tensor its gradient comes from."""

import pytest
import torch
from torch import nn

from tallystick.live import probe
from tallystick.live.probe import READ, SCORED
from tallystick.live.subjects import GPT2

PAIR = (GPT2.embedding, GPT2.head)


def test_the_rows_of_the_probe_are_the_two_uses_and_their_sum():
    model, ids = GPT2.build(), torch.tensor([READ])
    weight = model.transformer.wte.weight

    def gradient(logits):
        (found,) = torch.autograd.grad(logits[..., list(SCORED)].sum(), weight)
        return found

    both = gradient(model(ids).logits)
    embedding = gradient(model.transformer(ids).last_hidden_state @ weight.detach().T)
    head = gradient(model.transformer(ids).last_hidden_state.detach() @ weight.T)
    assert set(embedding.abs().sum(1).nonzero().flatten().tolist()) == set(READ)
    assert set(head.abs().sum(1).nonzero().flatten().tolist()) == set(SCORED)
    assert torch.allclose(both, embedding + head)
    assert probe.gradients(GPT2.build(), *PAIR) == ("one tensor", "")


def detached_head(model):
    model.lm_head.forward = lambda hidden: hidden @ model.lm_head.weight.detach().T
    return model


def detached_body(model):
    model.transformer.register_forward_hook(lambda *args: type(args[2])(args[2].last_hidden_state.detach()))
    return model


def apart(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    return model


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (detached_head, "one tensor, not all of it"),
        (detached_body, "one tensor, not all of it"),
        (apart, "two tensors"),
        (lambda model: detached_head(apart(model)), "embedding alone"),
        (lambda model: detached_body(apart(model)), "head alone"),
        (lambda model: model.requires_grad_(False), "frozen"),
        (lambda model: model.to("meta"), "no values"),
    ],
)
def test_a_use_whose_gradient_does_not_arrive_is_told(broken, found):
    assert probe.gradients(broken(GPT2.build()), *PAIR)[0] == found


def test_gradients_of_before_are_not_counted():
    model = GPT2.build()
    assert probe.gradients(model, *PAIR)[0] == "one tensor"
    assert probe.gradients(detached_head(model), *PAIR)[0] == "one tensor, not all of it"
