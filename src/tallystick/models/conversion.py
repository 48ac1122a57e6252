"""Values between a decoder's tensors and those of its family."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.models.decoder import Decoder
from tallystick.models.families import find
from tallystick.models.names import Stored, laid_out

Taken = dict[str, set[int | None]]


def stored_by(decoder: Decoder) -> dict[str, Stored]:
    """The tensors that the decoder's family stores for it, under each name that files have; a tied head too."""
    if "model_type" not in decoder.config.origin:
        raise BadInput(
            "a decoder built from a DecoderConfig alone has no family, whose names its tensors could have in a file:"
            " build it with Decoder.of",
            code="unsupported",
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in decoder.state_dict().items()}
    return laid_out(find(decoder.config.origin["model_type"]).rules, shapes)


def written_by(decoder: Decoder) -> dict[str, Stored]:
    """The tensors that a file of the family holds: each of ours once, and a tied head not at all."""
    taken: Taken = {"head.weight": {None}} if decoder.config.tied else {}
    return {name: stored for name, stored in stored_by(decoder).items() if take(stored, taken)}


def take(stored: Stored, taken: Taken) -> bool:
    """Note the tensors of ours that a stored one stands for, unless some of them are taken; says whether they were free.

    Args:
        stored: what it stands for.
        taken: of each of ours, the places that are, where None is all of it.
    """
    for part in stored.parts:
        places = taken.get(part.ours, set())
        if places and (part.place is None or not places.isdisjoint({part.place, None})):
            return False
    for part in stored.parts:
        taken.setdefault(part.ours, set()).add(part.place)
    return True


def pour(stored: Stored, tensor: Tensor, into: Mapping[str, Tensor], start: int = 0) -> None:
    """Copy a stored tensor, or some rows of it, into those of ours that it stands for.

    Args:
        stored: what it stands for.
        tensor: its values, of the shape that `stored` says, or fewer rows.
        into: our tensors by name.
        start: which row is the first.
    """
    axis = 1 - stored.along if stored.transposed else stored.along
    before = 0
    with torch.no_grad():
        for part in stored.parts:
            place = part.of(into)
            place = place.T if stored.transposed else place  # as the file has it
            size = place.shape[axis] if place.ndim else 1
            if axis == 0:
                first, end = max(start, before), min(start + len(tensor), before + size)
                if first < end:
                    place[first - before : end - before].copy_(tensor[first - start : end - start])
            else:
                place[start : start + len(tensor)].copy_(tensor.narrow(axis, before, size))
            before += size


def viewed(stored: Stored, tensor: Tensor, ours: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Those of ours as pieces of a stored tensor; None where they lie otherwise in it than ours do.

    Args:
        stored: what it stands for.
        tensor: all of it.
        ours: our tensors by name, for their shapes.
    """
    if stored.transposed or stored.along or any(part.place is not None for part in stored.parts):
        return None
    names = [part.ours for part in stored.parts]
    return dict(zip(names, tensor.split([len(ours[name]) for name in names]), strict=True))


def drawn(stored: Stored, out_of: Mapping[str, Tensor]) -> Tensor:
    """A stored tensor, from those of ours that it stands for; a view where it is one of them as it is."""
    pieces = [part.of(out_of).detach() for part in stored.parts]
    tensor = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=stored.along)
    return (tensor.T if stored.transposed else tensor).contiguous()
