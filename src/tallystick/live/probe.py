"""Looking at embedding and head: their relation, their values, and where the gradients of both uses arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.live.name_map import renamed
from tallystick.live.relation import relation_of, worst
from tallystick.sources.torch_module.named_parameters import places_of, stand_ins

if TYPE_CHECKING:
    import torch
    from torch import nn

# The tokens that are read, and those whose logits are the loss: each use has rows of its own in the gradient.
READ, SCORED = (5, 6, 7), (11, 12, 13)


class Seen(NamedTuple):
    """Embedding and head as they are now."""

    embedding: str
    head: str
    relation: str


def look(model: nn.Module, before: Sequence[str], embedding: str, head: str) -> Seen:
    """Under which names two tensors of old are now, and their relation.

    Args:
        model: a module, wrapped or not.
        before: all the names that it had.
        embedding: one of them.
        head: one of them.
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
    """Whether a tensor's values are what they were, in the dtype that they have now; added rows are not asked."""
    tensor = places_of(model)[name].tensor
    if tensor.is_meta:
        return ""
    now = _whole(tensor.detach())
    rows = min(now.shape[-2], len(before))
    # Stacked ones have a dimension more, and are each compared.
    return "same" if bool((now[..., :rows, :] == before.detach()[:rows].to(now.dtype)).all()) else "other"


def gradients(model: nn.Module, embedding: str, head: str) -> tuple[str, str]:
    """What one backward through both uses reaches, and what was said where it did not run.

    The loss is made of the logits of tokens that are not read. So the embedding's use gives a gradient to the rows that
    are read, the head's use to those that are scored, and the sum of the two has both and no others.
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
    except Exception as error:  # some refuse only here
        return "refused", f"{type(error).__name__}: {error}"
    used, scored = _rows(first), _rows(second)
    if first is second:
        return "one tensor" if used == {*READ, *SCORED} else "one tensor, not all of it", ""
    both = used == set(READ) and scored == set(SCORED)
    return "two tensors" if both else "embedding alone" if used else "head alone" if scored else "none", ""


def logits_of(answer: Any) -> torch.Tensor:
    """The logits in what a model answers: an object that has them, a tuple that begins with them, or they alone."""
    logits: torch.Tensor = getattr(answer, "logits", answer)
    return logits[0] if isinstance(logits, tuple) else logits


def _rows(parameter: Any) -> set[int]:
    """The rows of the vocabulary that got a gradient."""
    gradient = parameter.grad
    if gradient is None:
        return set()
    sizes = _whole(gradient).abs().sum(-1)
    return set(sizes.reshape(-1, sizes.shape[-1]).sum(0).nonzero().flatten().tolist())


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # of a sharded one
