"""`retie`: put one Parameter under every tied name, and once into the optimizer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.core.evidence import Compared, worst
from tallystick.errors import BadInput, shown
from tallystick.live.expected_ties import expected_groups
from tallystick.live.relation import compared, differences, same
from tallystick.sources.torch_module.live_tensors import is_lazy
from tallystick.sources.torch_module.named_parameters import (
    NamedParameters,
    assign,
    known_name,
    places_of,
    registered_by,
)

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Retied:
    """What `retie` changed in one group of names."""

    names: tuple[str, ...]
    kept: str  # the name whose Parameter all names hold now
    was: str  # relation before: aliased | copied | untied | unknown
    parameters: int  # elements of the dropped Parameters


@named
def retie(
    model: nn.Module, *names: str, keep: str | None = None, optimizer: torch.optim.Optimizer | None = None
) -> list[Retied]:
    """Tie the token embedding and the LM head again, and all else that the model declares.

    All names get the embedding's Parameter. Its gradient is then the sum over all uses.

    Args:
        model: a module, wrapped or not.
        *names: the tensors to tie, if the model does not declare them.
        keep: the name whose values are kept; required if the values differ.
        optimizer: dropped Parameters are removed from its groups and its state.

    Returns:
        What changed in each group; empty if everything was tied already.

    Raises:
        BadInput: if values differ and `keep` is not given, or shapes differ. Nothing is
            changed then.

    >>> from tallystick.models.teaching import BareBonesLM
    >>> model = BareBonesLM(50, 4)
    >>> retie(model, "embedding.weight", "head.weight", keep="embedding.weight")[0].parameters
    200
    >>> model.head.weight is model.embedding.weight
    True
    """
    places = places_of(model)
    if optimizer is not None and not hasattr(optimizer, "param_groups"):
        raise BadInput(f"the optimizer is {shown(optimizer)}, expected a torch.optim.Optimizer", code="bad-value")
    keep = known_name(places, keep) if keep is not None else None
    groups = [tuple(known_name(places, name) for name in names)] if names else expected_groups(model, places, keep)
    if len(names) == 1:
        raise BadInput(f"cannot tie {names[0]} to nothing: name a second tensor", code="bad-value")
    if not groups:
        raise BadInput(
            f"the config of {type(model).__name__} ties nothing: set tie_word_embeddings to true, or name the tensors",
            code="cannot-tie",
        )
    if keep is not None and not any(keep in group for group in groups):
        raise BadInput(
            f"{keep} is not among the tensors to tie: {'; '.join(', '.join(group) for group in groups)}",
            code="bad-value",
        )
    done = [(_planned(places, group, keep), group) for group in groups]  # all are checked before any is changed
    if any(plan is not None for plan, _ in done):
        _refuse_registered(model)
    for plan, group in done:
        kept = places[plan.kept if plan else group[0]].tensor
        old = {id(places[name].tensor): places[name].tensor for name in group}
        for name, place in places.items():  # other names of a dropped Parameter change too
            if id(place.tensor) in old and place.tensor is not kept:
                assign(places, name, kept)
        if optimizer is not None:
            _move_optimizer(optimizer, kept, [tensor for tensor in old.values() if tensor is not kept])
    return [plan for plan, _ in done if plan is not None]


def _planned(places: NamedParameters, group: tuple[str, ...], keep: str | None) -> Retied | None:
    kept = keep if keep in group else group[0]
    others = [name for name in group if not same(places[name], places[kept])]
    if not others:
        return None
    found = {name: compared(places[kept], places[name]) for name in others}
    for name in others:
        _refuse(places, kept, name, found[name], chosen=keep == kept)
    dropped = {id(places[name].tensor): math.prod(places[name].shape) for name in others}
    return Retied(group, kept, worst(found.values()).relation, sum(dropped.values()))


def _refuse(places: NamedParameters, kept: str, name: str, found: Compared, *, chosen: bool) -> None:
    one, other = places[kept], places[name]
    for lazy in (kept, name):
        if is_lazy(places[lazy].tensor):
            raise BadInput(f"{lazy} is lazy and has no shape yet: run the model once, then tie it", code="cannot-tie")
    if one.shape != other.shape:
        if one.shape == other.shape[::-1]:
            raise BadInput(
                f"{name} {other.shape} is {kept} {one.shape} transposed: use an nn.Linear head, which stores its"
                " weight like an embedding",
                code="cannot-tie",
            )
        raise BadInput(
            f"{kept} {one.shape} and {name} {other.shape} have different shapes and cannot be tied", code="cannot-tie"
        )
    if chosen:
        return
    choose = f'choose one to keep: keep="{kept}" or keep="{name}"'
    for what, mine, its in differences(one, other):
        raise BadInput(f"{kept} and {name} have different {what} ({mine}, {its}): {choose}", code="cannot-tie")
    if found.relation == "untied":
        raise BadInput(
            f"{kept} and {name} hold different values: {choose} (the other's values are lost)", code="cannot-tie"
        )
    if found.why and not (one.tensor.is_meta and other.tensor.is_meta):
        raise BadInput(f"cannot tell whether {kept} and {name} are equal ({found.why}): {choose}", code="cannot-tie")


def _refuse_registered(model: nn.Module) -> None:
    if wrapper := registered_by(model):
        raise BadInput(
            f"{wrapper} has already registered the parameters: tie the model first, then wrap both tensors in one unit",
            code="cannot-tie",
        )


def _move_optimizer(optimizer: torch.optim.Optimizer, kept: torch.Tensor, dropped: list[torch.Tensor]) -> None:
    """List the kept Parameter once, at its own or the first dropped one's place; keep its state."""
    gone = {id(tensor) for tensor in dropped}
    groups: list[dict[str, Any]] = optimizer.param_groups
    listed = any(tensor is kept for group in groups for tensor in group["params"])
    seen = False
    for group in groups:
        stay = []  # positions, since param_names runs parallel to params
        for position, tensor in enumerate(group["params"]):
            if id(tensor) in gone and not listed:
                group["params"][position] = tensor = kept  # noqa: PLW2901
                listed = True
            if id(tensor) in gone or (tensor is kept and seen):
                continue
            seen = seen or tensor is kept
            stay.append(position)
        for key in ("params", "param_names"):
            if key in group:
                group[key][:] = [group[key][position] for position in stay]
    for tensor in dropped:
        optimizer.state.pop(tensor, None)
