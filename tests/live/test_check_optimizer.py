"""What an optimizer holds of tied parameters, before and after a tie is made again."""

import pytest
import torch
from torch import nn

from live_models import HEAD, WTE, Plain, gpt2
from tallystick.live import check_optimizer, retie

__all__ = ["gpt2"]  # a fixture


@pytest.mark.parametrize("named", [False, True])
def test_retie_leaves_each_parameter_once_in_the_optimizer(named):
    model = Plain()
    model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())
    kept, dropped = model.wte.weight, model.lm_head.weight
    model.norm = nn.LayerNorm(3)
    optimizer = torch.optim.AdamW(model.named_parameters() if named else model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()
    before = optimizer.param_groups[0]["params"][:]
    optimizer.state[kept]["mine"] = state = torch.ones(1)
    optimizer.state[dropped]["its"] = torch.ones(1)
    optimizer.param_groups[0]["params"].append(kept)
    if named:
        optimizer.param_groups[0]["param_names"].append("again")
    retie(model, optimizer=optimizer)
    after = optimizer.param_groups[0]["params"]
    assert [id(tensor) for tensor in after] == [id(tensor) for tensor in before if tensor is not dropped]
    assert dropped not in optimizer.state
    assert optimizer.state[kept]["mine"] is state
    if named:
        assert optimizer.param_groups[0]["param_names"] == ["wte.weight", "norm.weight", "norm.bias"]
    del optimizer.state[kept]
    optimizer.step()
    assert [finding for finding in check_optimizer(model, optimizer) if finding.problem] == []


def test_a_kept_parameter_that_the_optimizer_lacks_takes_the_place_of_the_dropped():
    model = Plain(tie=False)
    other = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([{"params": [other]}, {"params": [model.lm_head.weight]}], lr=0.1)
    retie(model, keep="wte.weight", optimizer=optimizer)
    assert optimizer.param_groups[0]["params"] == [other]
    assert optimizer.param_groups[1]["params"][0] is model.wte.weight
    assert len(optimizer.param_groups[1]["params"]) == 1


def test_a_group_left_empty_can_step():
    model = Plain(tie=False)
    optimizer = torch.optim.AdamW([{"params": [model.wte.weight]}, {"params": [model.lm_head.weight]}])
    retie(model, keep="wte.weight", optimizer=optimizer)
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 0]


def codes(findings):
    return [(finding.code, finding.names) for finding in findings if finding.problem]


def test_a_sound_optimizer_has_no_problem_and_its_decay_named(gpt2):
    (finding,) = check_optimizer(gpt2, torch.optim.AdamW(gpt2.parameters(), weight_decay=0.1))
    assert not finding.problem
    assert finding.code == "tied-decay"
    assert finding.message == f"{WTE} = {HEAD} is in group 0, with weight_decay 0.1"


def test_what_is_wrong_with_an_optimizer_is_named():
    model = Plain(tie=False)
    wte, head = model.wte.weight, model.lm_head.weight
    optimizer = torch.optim.SGD([{"params": [wte]}, {"params": [head]}], lr=0.1)
    assert check_optimizer(model, optimizer) == []
    optimizer.param_groups[0]["params"].append(wte)
    assert codes(check_optimizer(model, optimizer)) == [("listed-twice", ("wte.weight",))]
    optimizer.param_groups[0]["params"][:] = [wte, head]
    (finding,) = check_optimizer(model, optimizer)
    assert (finding.code, finding.names) == ("in-two-groups", ("lm_head.weight",))
    assert "groups 0 and 1" in finding.message
    optimizer.param_groups[0]["params"][:] = []
    assert codes(check_optimizer(model, optimizer)) == [("not-in-optimizer", ("wte.weight",))]
    wte.requires_grad_(False)
    assert check_optimizer(model, optimizer) == []


def test_two_parameters_on_one_memory_and_strangers():
    model = Plain()
    model.lm_head.weight = nn.Parameter(model.wte.weight.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (finding,) = check_optimizer(model, optimizer)
    assert (finding.code, finding.names) == ("aliased-parameters", ("wte.weight", "lm_head.weight"))
    half = torch.optim.SGD([model.wte.weight], lr=0.1)
    assert codes(check_optimizer(model, half)) == [("not-in-optimizer", ("lm_head.weight",))]
    retie(model)  # and forgets the optimizer
    (finding, _) = check_optimizer(model, optimizer)
    assert finding.code == "not-in-model"
    assert "group 0 holds 1 Parameters missing from the model ((7, 3))" in finding.message
