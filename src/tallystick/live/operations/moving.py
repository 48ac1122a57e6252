"""Operations: change dtype and device, or build a model without values and fill it later."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import Workspace, operation


@operation("model.to(torch.bfloat16)")
def to_bfloat16(model: Any, workspace: Workspace) -> Any:
    """Change the dtype."""
    import torch

    return model.to(torch.bfloat16)


@operation('model.to("meta")')
def to_meta(model: Any, workspace: Workspace) -> Any:
    """Move to the device that holds no values."""
    return model.to("meta")


@operation('model.to_empty(device="cpu")')
def to_empty(model: Any, workspace: Workspace) -> Any:
    """Build on the meta device, materialise, and initialise each parameter."""
    import torch

    with torch.device("meta"):
        fresh = workspace.fresh()
    return _initialised(fresh.to_empty(device="cpu"))


@operation("torch.nn.utils.skip_init(Model)")
def skip_init(model: Any, workspace: Workspace) -> Any:
    """Build the model without its own initialisation, then initialise each parameter."""
    import torch
    from torch import nn

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self, device: Any = None) -> None:  # `skip_init` requires this argument
            super().__init__()
            with torch.device(device):
                self.model = workspace.fresh()

    return _initialised(nn.utils.skip_init(Model).model)


@operation("head = torch.nn.utils.skip_init(nn.Linear, ...)")
def head_skip_init(model: Any, workspace: Workspace) -> Any:
    """Build a new head without its own initialisation, then initialise it."""
    from torch import nn

    rows, width = workspace.head(model).weight.shape
    return workspace.replace_head(model, _initialised(nn.utils.skip_init(nn.Linear, width, rows, bias=False)))


def _initialised(module: Any) -> Any:
    import torch

    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.02)
    return module
