"""Where the tensors of a live model are: the module that holds each, by the name that users know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tallystick.errors import BadInput, nearest, quoted
from tallystick.extras import needing
from tallystick.sources.torch_module.fsdp_flat import is_flat, pieces_of, sharded_in
from tallystick.sources.torch_module.live_tensors import shape_of
from tallystick.sources.torch_module.unregistered_state import Held, held_by

if TYPE_CHECKING:
    import torch
    from torch import nn

# Modules that only wrap another, and the name under which they hold it: not a name that users know.
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


# These list the parameters once, when they wrap, and wait for each one's gradient in every step.
_REGISTERING = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")


class FoundTensor(NamedTuple):
    """One name of one tensor, and the module that holds it."""

    name: str
    tensor: torch.Tensor
    buffer: bool
    owner: nn.Module
    held: Held | None = None  # how a state dict holds it, where it is neither Parameter nor buffer


class NamedParameter(NamedTuple):
    """One name of one parameter."""

    tensor: torch.Tensor
    owner: nn.Module

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as the model has it, wherever the values are."""
        return shape_of(self.tensor)


NamedParameters = Mapping[str, NamedParameter]


def unwrapped(module: nn.Module) -> nn.Module:
    """The module inside its wrappers."""
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
    """Every parameter and saved buffer under every name, wrappers' names left out, in printing order.

    Args:
        module: a module, wrapped or not.
        prefix: of its names.
        above: the modules that it is in.
        flat: whether flat Parameters of FSDP1 stay as an optimizer lists them; else they are taken apart.
        held: filled with what each module holds besides, which is then found as well; None leaves that out.
        whole: what stands for a Parameter of which this process has a part, by `id`; found where not given.
    """
    if whole is None:
        whole = {} if flat else sharded_in(module)
    module = unwrapped(module)
    if id(module) in above:  # a module inside itself prints for ever
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
    """What `walk` finds, with what a state dict holds besides."""
    return list(walk(module, held={}))


def unsaved(module: nn.Module) -> Iterator[FoundTensor]:
    """The buffers that a state dict leaves out, under their short names."""
    for part in module.modules():
        for name in part._non_persistent_buffers_set:
            if (buffer := part._buffers.get(name)) is not None:
                yield FoundTensor(name, buffer, True, part)


def registered_by(model: nn.Module) -> str:
    """The wrapper, of the model or of a part of it, that has listed its Parameters; "" where none has."""
    for module in model.modules():
        for kind in type(module).__mro__:  # fully_shard gives a module a class of its own, derived from FSDPModule
            if kind.__name__ in _REGISTERING:
                return kind.__name__
    return ""


def places_of(model: nn.Module, *, flat: bool = False) -> NamedParameters:
    """Every name of every parameter, as in the state dict but for the names of wrappers; `flat` is that of `walk`."""
    with needing("a live module"):
        from torch import nn

    if not isinstance(model, nn.Module):
        raise BadInput(f"{quoted(model)} is a {type(model).__name__}, not a torch.nn.Module", code="bad-value")
    return {item.name: NamedParameter(item.tensor, item.owner) for item in walk(model, flat=flat) if not item.buffer}


def known_name(places: NamedParameters, name: str) -> str:
    """The name under which a parameter is listed; `_orig_mod.lm_head.weight` is `lm_head.weight`."""
    if name in places:
        return name
    bare = bare_name(name)
    if bare in places:
        return bare
    raise BadInput(f"the model has no parameter {quoted(name)}{nearest(bare, places)}", code="unknown-name")


def bare_name(name: str) -> str:
    """A name without those of wrappers."""
    return _WRAPPED.sub("", name)


def assign(places: NamedParameters, name: str, parameter: torch.Tensor) -> None:
    """Put one Parameter object under a name."""
    setattr(places[name].owner, name.rpartition(".")[2], parameter)


def stand_ins(places: NamedParameters, first: str, second: str) -> list[tuple[str, str]]:
    """The pairs of names that stand for a pair now: `lm_head.0.weight` where `lm_head` became a Sequential.

    Inside what took a module's place, only tensors of the other's shape can be the one that is meant.
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
    # PEFT keeps what it replaced: as `base_layer` beside the adapter's own matrices, one of which may have the
    # shape too; or as `original_module`, which does not run while the adapter is on.
    layers = [other for other in inside if ".base_layer." in other]
    return layers or [other for other in inside if ".original_module." not in other]
