"""A GPT-2 whose head was replaced: the seed of the project. Count it with `tallystick count
surgery:replaced_head`.
"""

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel


def replaced_head() -> nn.Module:
    """The model of a tutorial that swaps the head for one of its own: nothing crashes, and the tie
    is gone.
    """
    with torch.device("meta"):  # shapes and ties, without 650 MB of weights
        model = GPT2LMHeadModel(GPT2Config())
        model.lm_head = nn.Sequential(nn.Linear(768, 50257, bias=False))
    return model
