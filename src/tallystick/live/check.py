"""One line that fails when tensors that should be one are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.core.evidence import worst
from tallystick.errors import BadInput
from tallystick.live.expected_ties import meant_groups
from tallystick.live.relation import compared, meaning
from tallystick.live.tie_problems import cost, remedy
from tallystick.sources.torch_module.named_parameters import known_name, places_of

if TYPE_CHECKING:
    from torch import nn


class NotTied(AssertionError):
    """Tensors that should be one Parameter are not."""


def assert_tied(model: nn.Module, *names: str) -> None:
    """Fail unless names are one Parameter; without names, everything that the model means to be one.

    Args:
        model: a module, wrapped or not.
        *names: two or more names of its state dict.

    Raises:
        NotTied: with the relation, its cost and the call that ties them again, in one line.
        BadInput: for a name that the model does not have, or where it does not tell what is meant.
    """
    places = places_of(model)
    if len(names) == 1:
        raise BadInput(f"{names[0]} alone cannot be tied: name the tensor that it should be one with", code="bad-value")
    groups = [tuple(known_name(places, name) for name in names)] if names else meant_groups(model, places, resized=True)
    lines = []
    for group in groups:
        found = worst(compared(places[group[0]], places[name]) for name in group)
        if found.relation != "tied":
            lines.append(
                f"{' and '.join(group)} are {found.relation} ({meaning(found)}): {cost(places, group, found.relation)};"
                f" {remedy(model, places, group, found.relation)}"
            )
    if lines:
        raise NotTied(". ".join(lines))
