"""The flat Parameters of FSDP1, taken apart into those that the model was written with.

With `use_orig_params=False` FSDP lays all parameters of a unit end to end in one tensor of one dimension, of which each
rank keeps a part. Their names, shapes and ties are kept as its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tallystick.sources.torch_module.live_tensors import is_freed, stand_in

if TYPE_CHECKING:
    import torch
    from torch import nn

_ELSEWHERE = "FSDP holds the values in one flat parameter, of which this process has a part"


def is_flat(parameter: torch.Tensor) -> bool:
    """Whether this is a flat Parameter of FSDP1 that says what it is made of."""
    return all(hasattr(parameter, name) for name in ("_fqns", "_shapes", "_numels", "_param_infos"))


def pieces_of(flat: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, nn.Module]]:
    """The name, the tensor and the module of each parameter in a flat one; a tie is one tensor under two names.

    Names are relative to the module that holds the flat Parameter. Where this process has only a part of it, tensors
    have a shape and no values.
    """
    made: dict[str, torch.Tensor] = {}
    named = zip(flat._fqns, flat._param_infos, _tensors(flat), strict=True)
    for name, info, tensor in named:
        made[name] = tensor
        yield name, tensor, info.module
    for shared in getattr(flat, "_shared_param_infos", ()):
        name, first = (
            ".".join(filter(None, parts))
            for parts in ((shared.module_name, shared.param_name), (shared.prim_module_name, shared.prim_param_name))
        )
        if first in made:
            yield name, made[first], shared.module


def sharded_in(model: nn.Module) -> dict[int, torch.Tensor]:
    """With `use_orig_params=True`, what each Parameter is a part of here, by the Parameter's `id`.

    FSDP shows each rank its own part of each Parameter, of one dimension, and keeps the shape of the whole.
    """
    whole: dict[int, torch.Tensor] = {}
    for module in model.modules():
        flat = getattr(getattr(module, "_handle", None), "flat_param", None)
        if flat is None or not is_flat(flat) or not getattr(flat, "_params", None):
            continue
        for part, shape in zip(flat._params, flat._shapes, strict=True):
            if part.shape != shape:
                empty = stand_in(tuple(shape), part.dtype, _ELSEWHERE)
                whole[id(part)] = empty.requires_grad_(part.requires_grad)
    return whole


def _tensors(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    """Each parameter as a view of the flat one, or without values where this process does not hold all of them."""
    shapes: tuple[tuple[int, ...], ...] = flat._shapes
    sizes: tuple[int, ...] = flat._numels
    here = flat.numel() >= sum(sizes) and flat.dim() == 1 and not is_freed(flat)
    start = 0
    for shape, size in zip(shapes, sizes, strict=True):
        whole = flat.detach()[start : start + size].view(shape) if here else None
        piece = stand_in(shape, flat.dtype, _ELSEWHERE) if whole is None else whole
        yield piece.requires_grad_(flat.requires_grad)
        start += size
