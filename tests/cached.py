"""What transformers' own caches hold after a real model has read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

CACHES = ("past_key_values", "cache_params", "state")  # what outputs call them


def held(model: Any, tokens: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a model hands on after it read these tokens, each once; counts of positions are none."""
    with torch.no_grad():
        output = model.eval()(tokens, use_cache=True)
    found = {id(tensor): tensor for name in CACHES for tensor in _inside(output.get(name))}
    return [tensor for tensor in found.values() if tensor.is_floating_point()]


def _inside(whole: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists, dictionaries and transformers' own objects."""
    if isinstance(whole, torch.Tensor):
        yield whole
        return
    if type(whole).__module__.startswith("transformers.") and not hasattr(whole, "model_type"):
        whole = vars(whole)
    parts = whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list | tuple) else ()
    for part in parts:
        yield from _inside(part)
