"""The truth that the ledger is compared with: models that others build, on the meta device, weights
never made.

transformers builds those that it knows, ``skeletons.py`` has the others.
"""

from __future__ import annotations

import copy
import math
from typing import Any
from unittest import mock

import torch
import transformers
from torch import nn

from holding import Truth
from nesting import nested
from skeletons import SKELETONS

transformers.logging.set_verbosity_error()


def read(model: nn.Module) -> Truth:
    """What `model` holds."""
    named = list(model.named_parameters(remove_duplicate=False))
    groups: dict[int, set[str]] = {}
    for name, parameter in named:
        groups.setdefault(id(parameter), set()).add(name)
    shapes = {name: tuple(parameter.shape) for name, parameter in named}
    return Truth(
        shapes=shapes,
        ties={frozenset(names) for names in groups.values() if len(names) > 1},
        buffers={name: tuple(t.shape) for name, t in model.state_dict().items() if name not in shapes},
        total=sum(math.prod(parameter.shape) for parameter in model.parameters()),
        trainable=sum(math.prod(parameter.shape) for parameter in model.parameters() if parameter.requires_grad),
    )


# What gives tensors their first values. On the meta device there are none to give, and the trying
# takes half of the time.
INITIALISERS = [name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")]


@mock.patch.multiple(nn.init, **dict.fromkeys(INITIALISERS, lambda tensor, *_, **__: tensor))
def build(values: dict[str, Any]) -> nn.Module:
    """The causal language model that transformers builds from a config, or the skeleton of one that
    it does not know.
    """
    values = copy.deepcopy(values)  # transformers writes into dictionaries that it is given
    model_type = values.pop("model_type")
    with torch.device("meta"):
        if model_type in SKELETONS:
            return SKELETONS[model_type](**values)
        config = transformers.AutoConfig.for_model(model_type, **nested(values))
        return transformers.AutoModelForCausalLM.from_config(config)


def truth(values: dict[str, Any]) -> Truth:
    """What the model of a config holds."""
    return read(build(values))


# -- what is measured once, and committed ---------------------------------------------------------


def model(values: dict[str, Any]) -> str | None:
    """The digest of what the model of a config holds; None of a config of which transformers builds
    no model, for any reason.
    """
    try:
        return truth(values).digest
    except Exception:
        return None


def of_class(values: dict[str, Any]) -> list[str]:
    """The name of the class of a config's model, and the digest of what that holds."""
    built = build(values)
    return [type(built).__name__, read(built).digest]
