"""Words for broken ties: their cost, and the call that ties the tensors again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tallystick.core.tie_call import LAZY, one_shape_first, retie_call, tied_before
from tallystick.errors import BadInput
from tallystick.live.expected_ties import expected_groups
from tallystick.live.relation import compared, differences
from tallystick.sources.torch_module.live_tensors import is_lazy
from tallystick.sources.torch_module.named_parameters import NamedParameters, registered_by

if TYPE_CHECKING:
    from torch import nn


def cost(places: NamedParameters, names: Sequence[str], relation: str) -> str:
    """Return the cost of a broken tie in parameters."""
    objects = {id(places[name].tensor): math.prod(places[name].shape) for name in names}
    extra = f"{sum(objects.values()) - max(objects.values()):,}"
    if relation == "aliased":
        return f"the optimizer steps {extra} more parameters"
    return f"{extra} more parameters"


def remedy(model: nn.Module, places: NamedParameters, names: Sequence[str], relation: str) -> str:
    """Return the call that ties the names again, and what must be done before it.

    Args:
        model: the module that has them.
        places: its named parameters.
        names: names that should share one Parameter.
        relation: their current relation.
    """
    meant: list[tuple[str, ...]] = []
    with suppress(BadInput):
        meant = expected_groups(model, places)
    alone = len(meant) == 1 and set(names) <= set(meant[0])
    shapes = [places[name].shape for name in names]
    differ = any(differences(places[names[0]], places[name]) for name in names[1:])
    unseen = not all(places[name].tensor.is_meta for name in names) and any(
        compared(places[names[0]], places[name]).why for name in names[1:]
    )
    # If values, dtypes or shapes may differ, the user has to choose which tensor is kept.
    choose = relation == "untied" or differ or unseen or len(set(shapes)) > 1
    call = retie_call([] if alone else names, names[0] if choose else "")
    if any(is_lazy(places[name].tensor) for name in names):
        return LAZY.format(call)
    if len(set(shapes)) > 1:
        return one_shape_first(shapes, call)
    if wrapper := registered_by(model):
        return tied_before(wrapper, call)
    return f"tie them with {call}"
