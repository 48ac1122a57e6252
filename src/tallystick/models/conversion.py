"""Values between a decoder's tensors and those of its family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from tallystick.models.decoder import Decoder
from tallystick.models.families import find
from tallystick.models.names import Stored, laid_out


def stored_by(decoder: Decoder) -> dict[str, Stored]:
    """The tensors that the decoder's family stores for it; a tied head too, which files leave out."""
    shapes = {name: tuple(tensor.shape) for name, tensor in decoder.state_dict().items()}
    return laid_out(find(decoder.config.origin["model_type"]).rules, shapes)


def pour(stored: Stored, tensor: Tensor, into: Mapping[str, Tensor]) -> None:
    """Copy a stored tensor into those of ours that it stands for.

    Args:
        stored: what it stands for.
        tensor: its values, of the shape that `stored` says.
        into: our tensors by name.
    """
    tensor = tensor.T if stored.transposed else tensor
    places = [part.of(into) for part in stored.parts]
    with torch.no_grad():
        for place, piece in zip(
            places, tensor.split([one.shape[stored.along] for one in places], stored.along), strict=True
        ):
            place.copy_(piece)


def drawn(stored: Stored, out_of: Mapping[str, Tensor]) -> Tensor:
    """A stored tensor, from those of ours that it stands for; a view where it is one of them as it is."""
    pieces = [part.of(out_of).detach() for part in stored.parts]
    tensor = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=stored.along)
    return tensor.T.contiguous() if stored.transposed else tensor


def to_family(decoder: Decoder) -> Iterator[tuple[str, Tensor]]:
    """Every tensor as the family stores it, one after another, each of ours once and a tied head not at all."""
    ours = dict(decoder.state_dict())
    done: set[object] = {("head.weight", None)} if decoder.config.tied else set()
    for name, stored in stored_by(decoder).items():
        if done.isdisjoint(stored.parts):
            done.update(stored.parts)
            yield name, drawn(stored, ours)
