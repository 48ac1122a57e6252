"""Call a factory on the meta device: shapes, dtypes and ties without memory.

The result is used only if it is certain to equal the model in real memory. A factory that reads a
value, an address or a device may build something else there, so it is called again in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput
from tallystick.sources.factory.unfilled import unfilled
from tallystick.unforeseen import described

if TYPE_CHECKING:
    import torch
    from torch import nn


def built_on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    """Return the module that `build` returns on the meta device.

    Raises:
        BadInput: if it builds none there, or one that may differ from the module in real memory.
    """
    import torch

    with warnings.catch_warnings(), _watched() as watched, torch.device("meta"), unfilled():
        warnings.filterwarnings("ignore", message="(?s).*meta")  # copies to the meta device do nothing, as intended
        module = build()
    if watched.why:
        raise BadInput(watched.why, code="user-code")
    elsewhere = next((p.device for p in module.parameters() if p.device.type != "meta"), None)
    if elsewhere is not None:
        raise BadInput(f"its parameters are on {elsewhere} nevertheless", code="user-code")
    return module


def _watched() -> Any:
    """Return a torch function mode that records calls whose results differ on the meta device."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Watched(TorchFunctionMode):  # type: ignore[misc]
        why = ""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.data_ptr and args[0].is_meta:
                self.why = "it uses data_ptr(), which is 0 for all tensors there"
            elif func is torch.Tensor.__deepcopy__ and args[0].is_meta and _is_part(args[0]):
                self.why = "it copies part of a tensor, which loses sharing there"
            try:
                return func(*args, **(kwargs or {}))
            except Exception as error:
                self.why = f"it catches {described(error)}"
                raise

    return Watched()


def _is_part(tensor: torch.Tensor) -> bool:
    """Return whether a tensor views only part of its storage, which other tensors may share."""
    return bool(tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size())
