"""What is wrong between tensors that are not tied, and how to tie them, in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.live.meant import meant_groups
from tallystick.live.relation import compared, differences
from tallystick.sources.places import Places
from tallystick.sources.tensors import is_lazy

if TYPE_CHECKING:
    from torch import nn


def cost(places: Places, names: Sequence[str], relation: str) -> str:
    """What not being one costs."""
    objects = {id(places[name].tensor): math.prod(places[name].shape) for name in names}
    extra = f"{sum(objects.values()) - max(objects.values()):,}"
    if relation == "aliased":
        return f"an optimizer counts and steps {extra} parameters more"
    return f"{extra} parameters more"


def remedy(model: nn.Module, places: Places, names: Sequence[str], relation: str) -> str:
    """The call that ties names again."""
    if any(is_lazy(places[name].tensor) for name in names):
        return "run the model once to give each its shape, then call tallystick.retie(model)"
    if len({places[name].shape for name in names}) > 1:
        return "give them one shape, then call tallystick.retie(model)"
    meant: list[tuple[str, ...]] = []
    with suppress(BadInput):
        meant = meant_groups(model, places)
    arguments = [] if any(set(names) <= set(group) for group in meant) else [f'"{name}"' for name in names]
    differ = any(differences(places[names[0]], places[name]) for name in names[1:])
    unseen = not all(places[name].tensor.is_meta for name in names) and any(
        compared(places[names[0]], places[name]).why for name in names[1:]
    )
    if relation == "untied" or differ or unseen:  # somebody has to choose which of them stays
        arguments.append(f'keep="{names[0]}"')
    return f"tie them with tallystick.retie({', '.join(['model', *arguments])})"
