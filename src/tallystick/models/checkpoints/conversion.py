"""Copy values between a decoder's tensors and the tensors that its family stores."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tallystick.errors import BadInput
from tallystick.models.checkpoints.names import Stored, stored_layout
from tallystick.models.decoder import Decoder
from tallystick.models.families import find

Taken = dict[str, set[int | None]]


def stored_by(decoder: Decoder) -> dict[str, Stored]:
    """Return the tensors that the family stores, under every name of its files, the head's too."""
    if "model_type" not in decoder.config.origin:
        raise BadInput(
            "a decoder built from only a DecoderConfig has no family, so no tensor names for a file: build it"
            " with Decoder.of",
            code="unsupported",
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in decoder.state_dict().items()}
    return stored_layout(find(decoder.config.origin["model_type"]).rules, shapes)


def written_by(decoder: Decoder) -> dict[str, Stored]:
    """Return the tensors that a file of the family holds: each value once, no tied head."""
    taken: Taken = {"head.weight": {None}} if decoder.config.tied else {}
    return {name: stored for name, stored in stored_by(decoder).items() if take(stored, taken)}


def take(stored: Stored, taken: Taken) -> bool:
    """Mark the decoder tensors of a stored one as taken; return False if some already are.

    Args:
        stored: the stored tensor.
        taken: the taken indexes of each decoder tensor; None is the whole tensor.
    """
    for part in stored.parts:
        places = taken.get(part.ours, set())
        if places and (part.place is None or not places.isdisjoint({part.place, None})):
            return False
    for part in stored.parts:
        taken.setdefault(part.ours, set()).add(part.place)
    return True


def pour(stored: Stored, tensor: Tensor, into: Mapping[str, Tensor], start: int = 0) -> None:
    """Copy a stored tensor, or some of its rows, into the decoder's tensors.

    Args:
        stored: the stored tensor's description.
        tensor: its values, in the stored shape or with fewer rows.
        into: the decoder's tensors by name.
        start: index of the first row of `tensor`.
    """
    axis = 1 - stored.along if stored.transposed else stored.along
    before = 0
    with torch.no_grad():
        for part in stored.parts:
            place = part.of(into)
            place = place.T if stored.transposed else place  # in the file's layout
            size = place.shape[axis] if place.ndim else 1
            if axis == 0:
                first, end = max(start, before), min(start + len(tensor), before + size)
                if first < end:
                    place[first - before : end - before].copy_(tensor[first - start : end - start])
            else:
                place[start : start + len(tensor)].copy_(tensor.narrow(axis, before, size))
            before += size


def viewed(stored: Stored, tensor: Tensor, ours: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Return decoder tensors as views of a stored one; None if the layouts differ.

    Args:
        stored: the stored tensor's description.
        tensor: its whole value.
        ours: the decoder's tensors by name, for their shapes.
    """
    if stored.transposed or stored.along or any(part.place is not None for part in stored.parts):
        return None
    names = [part.ours for part in stored.parts]
    return dict(zip(names, tensor.split([len(ours[name]) for name in names]), strict=True))


def drawn(stored: Stored, out_of: Mapping[str, Tensor]) -> Tensor:
    """Return a stored tensor built from decoder tensors; a view if it is one of them unchanged."""
    pieces = [part.of(out_of).detach() for part in stored.parts]
    tensor = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=stored.along)
    return (tensor.T if stored.transposed else tensor).contiguous()
