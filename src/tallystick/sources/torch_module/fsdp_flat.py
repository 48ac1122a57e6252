"""Split FSDP1's flat Parameters into the model's original parameters.

With `use_orig_params=False`, FSDP concatenates all parameters of a unit in one 1-D tensor. Each
rank keeps a part of it. Names, shapes and ties are kept as its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tallystick.sources.torch_module.live_tensors import is_freed, stand_in

if TYPE_CHECKING:
    import torch
    from torch import nn

_ELSEWHERE = "FSDP holds the values in a flat parameter, and this process has only a shard"


def is_flat(parameter: torch.Tensor) -> bool:
    """Return whether a parameter is FSDP1's flat Parameter with its metadata."""
    return all(hasattr(parameter, name) for name in ("_fqns", "_shapes", "_numels", "_param_infos"))


def pieces_of(flat: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, nn.Module]]:
    """Yield the name, tensor and module of each parameter in a flat one.

    A tied tensor is yielded under each name. Names are relative to the module that holds the flat
    Parameter. If this process has only a part of it, the tensors have a shape and no values.
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
    """Return the whole tensor for each sharded Parameter, by the Parameter's `id`.

    With `use_orig_params=True`, FSDP shows each rank its 1-D part of each Parameter and keeps the
    shape of the whole. The returned tensors have that shape and no values.
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
    """Yield each parameter as a view of the flat one, or without values if it is not all here."""
    shapes: tuple[tuple[int, ...], ...] = flat._shapes
    sizes: tuple[int, ...] = flat._numels
    here = flat.numel() >= sum(sizes) and flat.dim() == 1 and not is_freed(flat)
    start = 0
    for shape, size in zip(shapes, sizes, strict=True):
        whole = flat.detach()[start : start + size].view(shape) if here else None
        piece = stand_in(shape, flat.dtype, _ELSEWHERE) if whole is None else whole
        yield piece.requires_grad_(flat.requires_grad)
        start += size
