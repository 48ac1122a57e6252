"""Find state-dict tensors that are not registered: packed weights and extra state.

`torch.ao.quantization` keeps weights in C++ objects, which `state_dict()` lists and `parameters()`
does not. Such weights are counted. Tensors of unknown purpose, such as the extra state of FP8
layers, are only listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.sources.torch_module.live_tensors import stand_in

if TYPE_CHECKING:
    import torch
    from torch import nn

_PACKED = "one is quantised, so its values are not compared"
_MOST_DEEP = 8  # levels of nested lists and objects
EXTRA_STATE = "_extra_state"  # torch's key for the result of get_extra_state()


class Held(NamedTuple):
    """An unregistered tensor of a state dict, by its shape alone."""

    name: str  # relative to the module
    tensor: torch.Tensor  # on the meta device: the unpacked copy of the values is not kept
    bytes: int  # of its values and inner scales
    kind: str  # parameter | buffer | unknown


def held_by(module: nn.Module) -> list[Held]:
    """Return the unregistered tensors of a module's own state dict, without its children's."""
    state = _own_state(module)
    if not state:
        return []
    import torch

    registered = {_memory(tensor) for tensor in (*module.parameters(), *module.buffers())}
    registered.discard(None)
    alone = not any(tensor is not None for tensor in module._parameters.values())
    found = [
        (key, name, tensor)  # all stay alive until the loop ends: a freed address would be reused
        for key, value in state.items()
        for name, tensor in _tensors(key, value, torch.ScriptObject)
    ]
    held = []
    for key, name, tensor in found:
        memory = _memory(tensor)
        if memory in registered:
            continue
        if memory is not None:
            registered.add(memory)
        empty = stand_in(tuple(tensor.shape), tensor.dtype, _PACKED)
        held.append(Held(name, empty, _bytes(tensor), _kind(key, tensor) if alone else "unknown"))
    return held


def _own_state(module: nn.Module) -> Mapping[str, Any]:
    """Return the state-dict entries of a module besides its Parameters and buffers.

    A module with torch's default methods has none, and is not called.
    """
    from torch import nn

    kind: Any = type(module)
    state: dict[str, Any] = {}
    try:
        if kind._save_to_state_dict is not nn.Module._save_to_state_dict:
            kind._save_to_state_dict(module, state, "", True)
        elif kind.get_extra_state is not nn.Module.get_extra_state:
            state[EXTRA_STATE] = module.get_extra_state()
    except Exception:  # user or library code; state_dict() would raise it too
        return {}
    names = {*module._parameters, *module._buffers}
    return {key: value for key, value in state.items() if key not in names}


def _kind(key: str, tensor: torch.Tensor) -> str:
    """Return a tensor's kind in a module without Parameters: a weight or bias, or a scale."""
    if key.rpartition(".")[2] == EXTRA_STATE:
        return "unknown"
    return "parameter" if tensor.dim() and (tensor.is_quantized or tensor.is_floating_point()) else "buffer"


def _tensors(name: str, value: Any, packed: type, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor in a value with its state-dict name, opening lists and packed objects."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
        return
    if depth == _MOST_DEEP:
        return
    if isinstance(value, packed):
        value = _unpacked(value)
    if isinstance(value, Mapping):
        inside = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        inside = [(str(place), one) for place, one in enumerate(value)]
    else:
        return
    for key, one in inside:
        yield from _tensors(f"{name}.{key}", one, packed, depth + 1)


def _unpacked(value: Any) -> Any:
    """Return the pickled state of a C++ object, or None."""
    try:
        state = value.__getstate__()
    except Exception:  # some objects cannot be pickled
        return None
    # (state, the name of its class)
    return state[0] if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], str) else state


def _memory(tensor: torch.Tensor) -> int | None:
    if not tensor.numel():
        return None
    try:
        key: int = tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # sparse tensors have no storage
        return None
    return key


def _bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of the values and of per-channel scales."""
    import torch

    size = tensor.numel() * tensor.element_size()
    if tensor.is_quantized and tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        scales = (tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points())
        size += sum(one.numel() * one.element_size() for one in scales)
    return int(size)
