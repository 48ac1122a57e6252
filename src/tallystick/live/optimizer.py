"""Check an optimizer against its model: each trainable Parameter exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.errors import BadInput, shown
from tallystick.live.relation import sharing
from tallystick.sources.torch_module.named_parameters import NamedParameters, places_of

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Finding:
    """A problem between optimizer and model; a mere note if `problem` is false."""

    code: str
    names: tuple[str, ...]
    message: str
    remedy: str
    problem: bool = True


@named
def check_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Finding]:
    """Find problems between a model and its optimizer, and the weight decay of tied matrices.

    Args:
        model: a module, wrapped or not.
        optimizer: the optimizer that steps it.

    Returns:
        Findings with the codes `listed-twice`, `in-two-groups`, `not-in-optimizer`,
        `not-in-model`, `aliased-parameters`, and `tied-decay`, which is only a note.

    >>> import torch
    >>> from tallystick.models.teaching import BareBonesLM
    >>> model = BareBonesLM(50, 4)
    >>> forgetful = torch.optim.AdamW([model.embedding.weight, model.head.weight])
    >>> [(found.code, found.names) for found in check_optimizer(model, forgetful)]
    [('not-in-optimizer', ('head.bias',))]
    """
    places = places_of(model, flat=True)
    if not hasattr(optimizer, "param_groups"):
        raise BadInput(f"the optimizer is {shown(optimizer)}, expected a torch.optim.Optimizer", code="bad-value")
    groups: list[dict[str, Any]] = optimizer.param_groups
    listed: dict[int, list[int]] = {}  # id of a Parameter -> the group of each of its listings
    for number, group in enumerate(groups):
        for tensor in group["params"]:
            listed.setdefault(id(tensor), []).append(number)
    names: dict[int, list[str]] = {}
    for name, place in places.items():
        names.setdefault(id(place.tensor), []).append(name)
    return [
        *_repeated(listed, names),
        *_missing(places, listed, names),
        *_strange(groups, names),
        *_aliased(places, listed),
        *_decay(places, groups, listed, names),
    ]


def _repeated(listed: dict[int, list[int]], names: dict[int, list[str]]) -> list[Finding]:
    findings = []
    for key, numbers in listed.items():
        called = tuple(names.get(key, ["a Parameter outside the model"]))
        if len(numbers) == 1:
            continue
        if len(set(numbers)) > 1:
            where = " and ".join(str(number) for number in dict.fromkeys(numbers))
            code, message = (
                "in-two-groups",
                f"{called[0]} is in groups {where}: each step updates it more than once",
            )
        else:
            code, message = (
                "listed-twice",
                (
                    f"{called[0]} is listed {len(numbers)} times in group {numbers[0]}: each step updates it"
                    f" {len(numbers)} times"
                ),
            )
        findings.append(Finding(code, called, message, "list each Parameter once, in one group"))
    return findings


def _missing(places: NamedParameters, listed: dict[int, list[int]], names: dict[int, list[str]]) -> list[Finding]:
    return [
        Finding(
            "not-in-optimizer",
            tuple(called),
            f"{called[0]} is trainable but in no group: it will not learn",
            "add it to a group, or set its requires_grad to False",
        )
        for key, called in names.items()
        if key not in listed and places[called[0]].tensor.requires_grad
    ]


def _strange(groups: list[dict[str, Any]], names: dict[int, list[str]]) -> list[Finding]:
    findings = []
    for number, group in enumerate(groups):
        strangers = [tensor for tensor in group["params"] if id(tensor) not in names]
        if strangers:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in strangers[:3])
            findings.append(
                Finding(
                    "not-in-model",
                    (),
                    f"group {number} holds {len(strangers)} Parameters missing from the model ({shapes}): they were"
                    " replaced after the optimizer was created",
                    "create the optimizer after the last change to the model",
                )
            )
    return findings


def _aliased(places: NamedParameters, listed: dict[int, list[int]]) -> list[Finding]:
    findings, seen = [], set[frozenset[int]]()
    for pair, relation in sharing(places).items():
        keys = frozenset(id(places[name].tensor) for name in pair)
        if relation != "aliased" or keys in seen or not keys <= listed.keys():
            continue
        seen.add(keys)
        findings.append(
            Finding(
                "aliased-parameters",
                pair,
                f"{pair[0]} and {pair[1]} are two Parameters sharing memory: each step updates it twice, each with"
                " half the gradient",
                f'tallystick.retie(model, "{pair[0]}", "{pair[1]}", optimizer=optimizer)',
            )
        )
    return findings


def _decay(
    places: NamedParameters, groups: list[dict[str, Any]], listed: dict[int, list[int]], names: dict[int, list[str]]
) -> list[Finding]:
    """Note the weight decay of tied matrices: a linear weight has it, an embedding rarely."""
    findings = []
    for key, called in names.items():
        if len(called) == 1 or key not in listed or len(places[called[0]].shape) != 2:
            continue
        number = listed[key][0]
        decay = groups[number].get("weight_decay", 0)
        findings.append(
            Finding(
                "tied-decay",
                tuple(called),
                f"{' = '.join(called)} is in group {number}, with weight_decay {decay}",
                "move it to another group if this is not intended",
                problem=False,
            )
        )
    return findings
