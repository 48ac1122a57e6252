"""What transformers' own caches hold after a real model has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import transformers

import reference
from nesting import nested

transformers.logging.set_verbosity_error()

CACHES = ("past_key_values", "cache_params", "state")  # what outputs call them


def held(model: Any, tokens: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a model hands on after it read these tokens, each once; counts of positions
    are none.
    """
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


# -- what is measured once, and committed ---------------------------------------------------------

Config = dict[str, Any]
Lengths = Sequence[tuple[int, int]]  # sequences at once, and tokens of each


def build(values: Config, dtype: str, **how: Any) -> Any:
    config = transformers.AutoConfig.for_model(**nested(values))
    return transformers.AutoModelForCausalLM.from_config(config, **how).eval().to(getattr(torch, dtype))


def drawn(batch: int, sequence: int, most: int = 60) -> torch.Tensor:
    return torch.randint(3, most, (batch, sequence))


def sizes(tensors: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def keys_and_values(values: Config, lengths: Lengths) -> list[int]:
    """Bytes of keys and values in the layers of a cache in float32."""
    model, found = build(values, "float32"), []
    for length in lengths:
        with torch.no_grad():
            cache = model(drawn(*length), use_cache=True).past_key_values
        found.append(sizes(t for layer in cache.layers if layer.keys is not None for t in (layer.keys, layer.values)))
    return found


def of_each_layer(values: Config, lengths: Lengths, dtype: str) -> list[int]:
    """Bytes of keys, values and states in the layers of a cache."""
    model, found = build(values, dtype), []
    for length in lengths:
        with torch.no_grad():
            read = model(drawn(*length), use_cache=True)
        cache = read.cache_params if "cache_params" in read else read.past_key_values
        linear = [t for t in getattr(cache, "linear_cache", ()) if isinstance(t, torch.Tensor)]  # MiniMax's
        found.append(sizes([*linear, *(tensor for layer in cache.layers for tensor in held_by(layer))]))
    return found


def of_no_cache(values: Config, lengths: Lengths, dtype: str) -> list[int]:
    """Bytes of what RWKV and xLSTM hand on, and of what the layers of RecurrentGemma hold."""
    model = reference.build(values).to_empty(device="cpu").to(getattr(torch, dtype)).eval()
    found = []
    for length in lengths:
        with torch.no_grad():
            tokens = drawn(*length)
            if values["model_type"] == "rwkv":
                tensors = model(tokens, use_cache=True).state
            elif values["model_type"] == "xlstm":
                states = model(tokens, use_cache=True).cache_params.rnn_state
                tensors = [tensor for layer in states.values() for tensor in layer]
            else:
                cache = transformers.DynamicCache(config=model.config)
                model(tokens, use_cache=True, past_key_values=cache)
                tensors = [tensor for layer in cache.layers for tensor in held_by(layer)]
                scans = [m for m in model.modules() if hasattr(m, "conv1d_state")]
                tensors += [tensor for scan in scans for tensor in (scan.conv1d_state, scan.rg_lru.recurrent_states)]
        found.append(sizes(tensors))
    return found


def of_any_type(values: Config, lengths: Lengths) -> list[int]:
    """Bytes of all that a model in bfloat16 hands on, whatever its type calls that."""
    config = transformers.AutoConfig.for_model(**nested(values))
    how = {"experts_implementation": "eager", "dtype": torch.bfloat16}
    model = transformers.AutoModelForCausalLM.from_config(config, **how)
    if values["model_type"] == "inkling2_text":
        for layer in model.model.layers:
            layer.mlp.gate.float()  # which transformers does not run in 16 bits
    return [sizes(held(model, drawn(*length, most=20))) for length in lengths]


def held_by(layer: Any) -> list[torch.Tensor]:
    """The tensors of one layer's cache, whichever kind of layer it is; some keep a state beside
    keys and values.
    """
    states = [state for kind in ("conv_states", "recurrent_states") for state in getattr(layer, kind, {}).values()]
    found = [*states, *(getattr(layer, name, None) for name in ("keys", "values"))]
    return [tensor for tensor in found if tensor is not None]
