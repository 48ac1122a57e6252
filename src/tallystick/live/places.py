"""Where the parameters of a live model are: the module that holds each, by the name that users know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tallystick.errors import BadInput, nearest, quoted
from tallystick.sources.module import WRAPPERS, _walk
from tallystick.sources.storages import shape_of

if TYPE_CHECKING:
    import torch
    from torch import nn

_WRAPPED = re.compile(rf"(?:(?<=\.)|^)(?:{'|'.join(sorted(set(WRAPPERS.values())))})\.")


class Place(NamedTuple):
    """One name of one parameter."""

    tensor: torch.Tensor
    owner: nn.Module

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as the model has it, wherever the values are."""
        return shape_of(self.tensor)


Places = Mapping[str, Place]


def places_of(model: nn.Module) -> Places:
    """Every name of every parameter, as in the state dict but for the names of wrappers."""
    from torch import nn
    from torch.nn.parameter import is_lazy

    if not isinstance(model, nn.Module):
        raise BadInput(f"{quoted(model)} is a {type(model).__name__}, not a torch.nn.Module")
    # A lazy parameter has no shape and no values before the first forward pass, so nothing to say about.
    found = (item for item in _walk(model, "") if not item.buffer and not is_lazy(item.tensor))
    return {item.name: Place(item.tensor, item.owner) for item in found}


def known_name(places: Places, name: str) -> str:
    """The name under which a parameter is listed; `_orig_mod.lm_head.weight` is `lm_head.weight`."""
    if name in places:
        return name
    bare = bare_name(name)
    if bare in places:
        return bare
    raise BadInput(f"the model has no parameter {quoted(name)}{nearest(bare, places)}")


def bare_name(name: str) -> str:
    """A name without those of wrappers."""
    return _WRAPPED.sub("", name)


def assign(places: Places, name: str, parameter: torch.Tensor) -> None:
    """Put one Parameter object under a name."""
    setattr(places[name].owner, name.rpartition(".")[2], parameter)


def stand_ins(places: Places, first: str, second: str) -> list[tuple[str, str]]:
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


def _inside(places: Places, name: str) -> list[str]:
    if name in places:
        return [name]
    module = name.rpartition(".")[0]
    inside = [other for other in places if module and other.startswith(module + ".")]
    # PEFT keeps what it replaced: as `base_layer` beside the adapter's own matrices, one of which may have the
    # shape too; or as `original_module`, which does not run while the adapter is on.
    layers = [other for other in inside if ".base_layer." in other]
    return layers or [other for other in inside if ".original_module." not in other]
