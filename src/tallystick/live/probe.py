"""Inspect embedding and head: their relation, values, and where both uses' gradients arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.live.name_map import renamed
from tallystick.live.relation import relation_of, worst
from tallystick.sources.torch_module.named_parameters import places_of, stand_ins

if TYPE_CHECKING:
    import torch
    from torch import nn

# Input ids, and ids whose logits form the loss: each use has its own rows in the gradient.
READ, SCORED = (5, 6, 7), (11, 12, 13)


class Seen(NamedTuple):
    """The current names of embedding and head, and their relation."""

    embedding: str
    head: str
    relation: str


def look(model: nn.Module, before: Sequence[str], embedding: str, head: str) -> Seen:
    """Find two tensors under their current names, and return their relation.

    Args:
        model: a module, wrapped or not.
        before: all parameter names before the operation.
        embedding: the embedding's name before the operation.
        head: the head's name before the operation.
    """
    places = places_of(model)
    now = renamed(before, places)
    pairs = stand_ins(places, now(embedding), now(head))
    if not pairs:
        return Seen(embedding, head, "gone")
    relations = {pair: relation_of(places[pair[0]], places[pair[1]]) for pair in pairs}
    found = worst(list(relations.values()))
    return next(Seen(*pair, found) for pair in pairs if relations[pair] == found)


def values(model: nn.Module, name: str, before: torch.Tensor) -> str:
    """Compare a tensor's values with those before, in its new dtype and without added rows.

    Args:
        model: a module, wrapped or not.
        name: current name of the tensor.
        before: its original values, (V, d).

    Returns:
        "same" or "other"; "" on the meta device.
    """
    tensor = places_of(model)[name].tensor
    if tensor.is_meta:
        return ""
    now = _whole(tensor.detach())
    rows = min(now.shape[-2], len(before))
    # stacked tensors have one more dimension; each is compared
    return "same" if bool((now[..., :rows, :] == before.detach()[:rows].to(now.dtype)).all()) else "other"


def gradients(model: nn.Module, embedding: str, head: str) -> tuple[str, str]:
    """Run one backward pass through both uses, and find the tensors that get a gradient.

    The loss is the sum of logits of ids that are not in the input. So the embedding's use has
    gradient in the input ids' rows, and the head's use in the scored ids' rows.

    Args:
        model: a module, wrapped or not.
        embedding: current name of the embedding.
        head: current name of the head.

    Returns:
        A description, such as "one tensor" or "two tensors"; the error if the pass failed, or "".
    """
    import torch

    places = places_of(model)
    first, second = places[embedding].tensor, places[head].tensor
    if first.is_meta or second.is_meta:
        return "no values", ""
    if not (first.requires_grad or second.requires_grad):
        return "frozen", ""
    model.zero_grad()
    try:
        logits_of(model(torch.tensor([READ])))[..., list(SCORED)].float().sum().backward()
    except Exception as error:  # some models fail only here
        return "refused", f"{type(error).__name__}: {error}"
    used, scored = _rows(first), _rows(second)
    if first is second:
        return "one tensor" if used == {*READ, *SCORED} else "one tensor, not all of it", ""
    both = used == set(READ) and scored == set(SCORED)
    return "two tensors" if both else "embedding alone" if used else "head alone" if scored else "none", ""


def logits_of(answer: Any) -> torch.Tensor:
    """Return the logits of a model's output: an object, a tuple, or the tensor itself."""
    logits: torch.Tensor = getattr(answer, "logits", answer)
    return logits[0] if isinstance(logits, tuple) else logits


def _rows(parameter: Any) -> set[int]:
    """Return the rows of the vocabulary whose gradient is not zero."""
    gradient = parameter.grad
    if gradient is None:
        return set()
    sizes = _whole(gradient).abs().sum(-1)
    return set(sizes.reshape(-1, sizes.shape[-1]).sum(0).nonzero().flatten().tolist())


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # a sharded DTensor
