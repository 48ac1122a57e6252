"""Which parameters of a live model are meant to be one: as transformers says it, or as the roles of its tensors do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.sources.meant import told_groups
from tallystick.sources.module import ledger_from_module
from tallystick.sources.places import Places

if TYPE_CHECKING:
    from torch import nn


def meant_groups(model: nn.Module, places: Places, keep: str | None = None) -> list[tuple[str, ...]]:
    """Groups of names that should be one Parameter, the one that stays by default first.

    Empty where the model's config says that nothing is tied.

    Raises:
        BadInput: where the model does not tell which tensors are meant.
    """
    told = told_groups(model, places)
    return [_by_role(model, places, keep)] if told is None else told


def _by_role(model: nn.Module, places: Places, keep: str | None) -> tuple[str, ...]:
    """The token embedding and the head, told by their names, their modules and their shapes."""
    roles = {entry.name: entry.role for entry in ledger_from_module(model).entries if entry.name in places}
    embeddings = [name for name, role in roles.items() if role == "token_embedding" and len(places[name].shape) == 2]
    shapes = {shape for name in embeddings for shape in (places[name].shape, places[name].shape[::-1])}
    heads = [name for name, role in roles.items() if role == "head" and places[name].shape in shapes]
    if not heads:  # a head of another name is a Linear from the model's width to its vocabulary
        widths = {places[name].shape for name in embeddings}
        heads = [
            name
            for name, role in roles.items()
            if role == "other" and "Linear" in type(places[name].owner).__name__ and places[name].shape in widths
        ]
    shapes = {shape for name in heads for shape in (places[name].shape, places[name].shape[::-1])}
    embeddings = [name for name in embeddings if places[name].shape in shapes]
    if not embeddings or not heads:
        raise BadInput(
            f"found no token embedding and head of one shape in {type(model).__name__}: name the tensors to be tied"
        )
    if keep in embeddings:
        embeddings = [keep]
    for several in (embeddings, heads):
        if len({id(places[name].tensor) for name in several}) > 1:
            raise BadInput(
                f"several tensors of {type(model).__name__} could be meant ({', '.join(several[:4])}):"
                " name those to be tied"
            )
    return (*embeddings, *heads)
