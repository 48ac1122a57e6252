"""List a live model's tensors by user-facing name, with the module that holds each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.extras import needing
from tallystick.sources.torch_module.fsdp_flat import is_flat, pieces_of, sharded_in
from tallystick.sources.torch_module.live_tensors import shape_of
from tallystick.sources.torch_module.unregistered_state import Held, held_by

if TYPE_CHECKING:
    import torch
    from torch import nn

# Wrapper class -> the attribute that holds the wrapped module; it is removed from names.
WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "DeepSpeedEngine": "module",
    "AveragedModel": "module",
}
_WRAPPED = re.compile(rf"(?:(?<=\.)|^)(?:{'|'.join(sorted(set(WRAPPERS.values())))})\.")


# These wrappers register the parameters once and wait for each one's gradient in every step.
_REGISTERING = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")


class FoundTensor(NamedTuple):
    """One name of one tensor, and the module that holds it."""

    name: str
    tensor: torch.Tensor
    buffer: bool
    owner: nn.Module
    held: Held | None = None  # set if the tensor is neither Parameter nor buffer


class NamedParameter(NamedTuple):
    """One name of one parameter."""

    tensor: torch.Tensor
    owner: nn.Module

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in the model, also if the values are elsewhere."""
        return shape_of(self.tensor)


NamedParameters = Mapping[str, NamedParameter]


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module inside its wrappers."""
    while (name := WRAPPERS.get(type(module).__name__)) and name in module._modules:
        inner = module._modules[name]
        if inner is None:
            break
        module = inner
    return module


def walk(
    module: nn.Module,
    prefix: str = "",
    above: tuple[int, ...] = (),
    *,
    flat: bool = False,
    held: dict[int, list[Held]] | None = None,
    whole: Mapping[int, torch.Tensor] | None = None,
) -> Iterator[FoundTensor]:
    """Yield every parameter and saved buffer under every name, in printing order.

    Names omit the wrappers' attributes.

    Args:
        module: a module, wrapped or not.
        prefix: put before the names.
        above: ids of the enclosing modules.
        flat: whether FSDP1's flat Parameters stay whole, as an optimizer lists them; else they are
            split.
        held: filled with each module's unregistered tensors, which are then yielded too; None omits
            them.
        whole: the whole tensor for each sharded Parameter, by `id`; computed if not given.
    """
    if whole is None:
        whole = {} if flat else sharded_in(module)
    module = unwrapped(module)
    if id(module) in above:  # a module that contains itself would recurse forever
        return
    for name, parameter in module._parameters.items():
        if parameter is not None and (flat or not is_flat(parameter)):
            yield FoundTensor(prefix + name, whole.get(id(parameter), parameter), False, module)
        elif parameter is not None:
            yield from (
                FoundTensor(prefix + bare_name(one), piece, False, owner) for one, piece, owner in pieces_of(parameter)
            )
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield FoundTensor(prefix + name, buffer, True, module)
    if held is not None:
        if id(module) not in held:
            held[id(module)] = held_by(module)
        here = held[id(module)]
        yield from (FoundTensor(prefix + one.name, one.tensor, one.kind == "buffer", module, one) for one in here)
    for name, child in module._modules.items():
        if child is not None:
            yield from walk(child, f"{prefix}{name}.", (*above, id(module)), flat=flat, held=held, whole=whole)


def everything_in(module: nn.Module) -> list[FoundTensor]:
    """Return `walk`'s tensors together with unregistered state-dict tensors."""
    return list(walk(module, held={}))


def unsaved(module: nn.Module) -> Iterator[FoundTensor]:
    """Yield the buffers that a state dict omits, under their short names."""
    for part in module.modules():
        for name in part._non_persistent_buffers_set:
            if (buffer := part._buffers.get(name)) is not None:
                yield FoundTensor(name, buffer, True, part)


def registered_by(model: nn.Module) -> str:
    """Return the wrapper of the model or a part that has registered its Parameters, or ""."""
    for module in model.modules():
        for kind in type(module).__mro__:  # fully_shard changes a module's class to a subclass of FSDPModule
            if kind.__name__ in _REGISTERING:
                return kind.__name__
    return ""


def places_of(model: nn.Module, *, flat: bool = False) -> NamedParameters:
    """Return every parameter by every name, as in the state dict but without wrappers' attributes.

    Args:
        model: wrapped or not.
        flat: as in `walk`.

    Raises:
        BadInput: if `model` is not an `nn.Module`.
    """
    with needing("a live module"):
        from torch import nn

    if not isinstance(model, nn.Module):
        raise BadInput(f"the model is {shown(model)}, expected a torch.nn.Module", code="bad-value")
    return {item.name: NamedParameter(item.tensor, item.owner) for item in walk(model, flat=flat) if not item.buffer}


def known_name(places: NamedParameters, name: str) -> str:
    """Return the listed name of a parameter: `lm_head.weight` for `_orig_mod.lm_head.weight`.

    Args:
        places: the model's parameters by name.
        name: the user's name, with or without wrappers' attributes.

    Raises:
        BadInput: if the model has no such parameter.
    """
    if not isinstance(name, str):
        raise BadInput(f"the name of a parameter is {shown(name)}, expected text", code="bad-value")
    if name in places:
        return name
    bare = bare_name(name)
    if bare in places:
        return bare
    raise BadInput(f"the model has no parameter {quoted(name)}{nearest(bare, places)}", code="unknown-name")


def bare_name(name: str) -> str:
    """Return a name without the wrappers' attributes."""
    return _WRAPPED.sub("", name)


def assign(places: NamedParameters, name: str, parameter: torch.Tensor) -> None:
    """Set one Parameter object under a name.

    Args:
        places: the model's parameters by name.
        name: the name to change.
        parameter: the new Parameter.
    """
    setattr(places[name].owner, name.rpartition(".")[2], parameter)


def stand_ins(places: NamedParameters, first: str, second: str) -> list[tuple[str, str]]:
    """Return the pairs of current names that replaced a pair of tied names.

    If `lm_head` became a Sequential, `lm_head.0.weight` stands for `lm_head.weight`. Inside a
    replacing module, only tensors of the other's shape count.

    Args:
        places: the model's parameters by name.
        first: a name, such as the embedding's.
        second: the name of the tensor tied to it.
    """
    if first in places and second in places:
        return [(first, second)]
    return [
        (here, there)
        for here in _inside(places, first)
        for there in _inside(places, second)
        if here != there and places[here].shape in (places[there].shape, places[there].shape[::-1])
    ]


def _inside(places: NamedParameters, name: str) -> list[str]:
    if name in places:
        return [name]
    module = name.rpartition(".")[0]
    inside = [other for other in places if module and other.startswith(module + ".")]
    # PEFT keeps a replaced module as `base_layer`, next to adapter matrices that may have its
    # shape, or as `original_module`, which does not run while the adapter is on.
    layers = [other for other in inside if ".base_layer." in other]
    return layers or [other for other in inside if ".original_module." not in other]
