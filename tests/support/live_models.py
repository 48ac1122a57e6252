"""Models whose ties break in tests: a tiny GPT-2, sizes of a tiny T5, and a model that no library
knows.
"""

import pytest
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

WTE, HEAD = "transformer.wte.weight", "lm_head.weight"
TINY = {"vocab_size": 101, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}
T5_TINY = {"vocab_size": 50, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}


@pytest.fixture
def gpt2():
    return GPT2LMHeadModel(GPT2Config(**TINY))


class Plain(nn.Module):
    """A model that no library knows."""

    def __init__(self, embedding="wte", head="lm_head", *, tie=True):
        super().__init__()
        self.add_module(embedding, nn.Embedding(7, 3))
        self.add_module(head, nn.Linear(3, 7, bias=False))
        if tie:
            self.get_submodule(head).weight = self.get_submodule(embedding).weight

    def forward(self, ids):
        embedding, head = self.children()
        return head(embedding(ids))


def one_line(error):
    """What a raised error says, which is one line."""
    text = str(error.value)
    assert "\n" not in text
    return text


def replaced(model):
    """Give a tiny GPT-2 another head, which is not tied."""
    model.lm_head = nn.Linear(8, 101, bias=False)


class Wrapper(nn.Module):
    """A module around a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model
