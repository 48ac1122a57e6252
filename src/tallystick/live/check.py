"""`assert_tied`: fail if parameters that should be tied are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.arguments import named
from tallystick.core.evidence import worst
from tallystick.errors import BadInput
from tallystick.live.expected_ties import expected_groups
from tallystick.live.relation import compared, meaning
from tallystick.live.tie_problems import cost, remedy
from tallystick.sources.torch_module.named_parameters import known_name, places_of

if TYPE_CHECKING:
    from torch import nn


class NotTied(AssertionError):
    """Tensors that should share one Parameter do not."""


@named
def assert_tied(model: nn.Module, *names: str) -> None:
    """Fail unless the named tensors share one Parameter.

    Without names, check every group of tensors that the model declares as tied.

    Args:
        model: a module, wrapped or not.
        *names: two or more names of the model's state dict.

    Raises:
        NotTied: with the relation, its cost, and the call that ties the tensors again.
        BadInput: if the model has no such name, or does not declare what should be tied.

    >>> from tallystick.models.teaching import BareBonesLM
    >>> assert_tied(BareBonesLM(50, 4, tie_word_embeddings=True), "embedding.weight", "head.weight")
    >>> model = BareBonesLM(50, 4)
    >>> assert_tied(model, "embedding.weight", "head.weight")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tallystick.live.check.NotTied: embedding.weight and head.weight are untied ...
    """
    places = places_of(model)
    if len(names) == 1:
        raise BadInput(f"cannot tie {names[0]} to nothing: name a second tensor", code="bad-value")
    groups = (
        [tuple(known_name(places, name) for name in names)] if names else expected_groups(model, places, resized=True)
    )
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
