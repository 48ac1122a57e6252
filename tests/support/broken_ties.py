"""A small GPT-2 in training whose tie breaks, and what shows of it."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import tallystick
from tallystick import assert_tied, retie, ties
from tallystick.live import NotTied

WTE, HEAD = "transformer.wte.weight", "lm_head.weight"


SIZES = {"vocab_size": 101, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2, "bos_token_id": 0}


SIZE = 101 * 8


TOTAL = SIZE + 16 * 8 + 2 * (12 * 8 * 8 + 13 * 8) + 2 * 8


IDS = torch.arange(5)[None]


def gpt2(**more):
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**SIZES, eos_token_id=0, **more)).eval()


def logits(model):
    with torch.no_grad():
        return model(IDS).logits


def step(model, optimizer):
    optimizer.zero_grad()
    model(IDS, labels=IDS).loss.backward()
    optimizer.step()


def named(model, code, relation, names=(WTE, HEAD)):
    """The model's one problem has this code; the call that `assert_tied` names for it is
    returned.
    """
    (problem,) = ties(model).problems
    assert (problem.code, problem.names) == (code, names)
    (group,) = [group for group in ties(model).groups if group.names == names]
    assert (group.relation, group.expected, ties(model).verdict) == (relation, True, "contradiction")
    with pytest.raises(NotTied, match=f"are {relation} ") as error:
        assert_tied(model)
    message = str(error.value)
    assert f"{group.parameters:,} more parameters" in message
    assert "\n" not in message
    return message.rpartition("tie them with ")[2]


def followed(call, model, **more):
    """What a message says to call, called."""
    return eval(call, {"tallystick": tallystick, "model": model, **more})


def mended(model, call, **more):
    """Do what the message says, and see one Parameter where there were two."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = model.get_input_embeddings().weight.numel()
    (done,) = followed(call, model, **more)
    assert (done.kept, done.parameters) == (done.names[0], size)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters - size
    assert_tied(model)
    assert (ties(model).verdict, ties(model).problems) == ("consistent", ())
    assert retie(model) == []


def head_replaced(model):
    model.lm_head = nn.Linear(8, 101, bias=False)
