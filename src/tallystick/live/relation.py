"""The relation of two live tensors: tied, aliased, copied, untied or unknown."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from tallystick.core import evidence
from tallystick.core.evidence import Compared
from tallystick.sources.torch_module.live_tensors import identity_of
from tallystick.sources.torch_module.named_parameters import NamedParameter, NamedParameters
from tallystick.sources.torch_module.storages import Storages
from tallystick.sources.torch_module.values import compare

if TYPE_CHECKING:
    import torch

MEANING = {
    "tied": "one Parameter",
    "aliased": "two Parameters sharing memory: separate gradients and optimizer steps",
    "copied": "equal values in separate memory",
    "untied": "different values",
    "unknown": "separate memory, no values to compare",
    "gone": "the tensor no longer exists",
}
# For each relation, the relations that are a loss. A copy that can no longer be compared is not a
# loss. Separate memory is visible without values: from tied or aliased, unknown is a loss.
WORSE = {
    "tied": frozenset({"aliased", "copied", "untied", "unknown", "gone"}),
    "aliased": frozenset({"copied", "untied", "unknown", "gone"}),
    "copied": frozenset({"untied", "gone"}),
}


def relation_of(first: NamedParameter, second: NamedParameter) -> str:
    """Return the relation of two parameters: by identity, then memory, then values."""
    return compared(first, second).relation


def compared(first: NamedParameter, second: NamedParameter) -> Compared:
    """Return the relation of two parameters, with the reason if it is not fully known.

    Identity is compared first, then memory, then values.
    """
    if same(first, second):
        return Compared("tied")
    if _overlap(first.tensor, second.tensor):
        return Compared("aliased")
    return compare(first.tensor, second.tensor)


def same(first: NamedParameter, second: NamedParameter) -> bool:
    """Return whether two names hold the same Parameter."""
    return identity_of(first.tensor) == identity_of(second.tensor)


def meaning(found: Compared) -> str:
    """Return a relation in words."""
    if found.relation == "untied" and found.why:
        return found.why
    return f"separate memory: {found.why}" if found.relation == "unknown" and found.why else MEANING[found.relation]


def differences(first: NamedParameter, second: NamedParameter) -> list[tuple[str, object, object]]:
    """Return differences other than values: dtype, device, requires_grad."""
    one, other = first.tensor, second.tensor
    facts = (
        ("dtypes", one.dtype, other.dtype),
        ("devices", one.device, other.device),
        ("requires_grad", one.requires_grad, other.requires_grad),
    )
    return [(what, mine, its) for what, mine, its in facts if mine != its]


def worst(relations: list[str]) -> str:
    """Return the relation furthest from tied."""
    return evidence.worst(map(Compared, relations)).relation


def sharing(places: NamedParameters) -> dict[tuple[str, str], str]:
    """Return all pairs of names that are tied or aliased, declared or not.

    Args:
        places: the named parameters of a model.

    Returns:
        "tied" or "aliased" for each pair.
    """
    storages, groups = Storages(), dict[str, list[str]]()
    for name, place in places.items():
        groups.setdefault(storages.take(name, place.tensor)[0], []).append(name)
    pairs = {}
    for group in groups.values():
        for first, second in combinations(group, 2):
            one, other = places[first], places[second]
            # Two slices of one storage may each overlap a third, but not each other.
            if same(one, other) or _overlap(one.tensor, other.tensor):
                pairs[first, second] = "tied" if same(one, other) else "aliased"
    return pairs


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    storages = Storages()
    storages.take("one", one)
    return storages.take("other", other)[0] == "one"
