"""Operations: load a state dict into an existing model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.live.operations.registry import Workspace, operation

if TYPE_CHECKING:
    import torch


@operation("load_state_dict(state)")
def loaded(model: Any, workspace: Workspace) -> Any:
    """Load a state dict with both names."""
    model.load_state_dict(workspace.fresh().state_dict())
    return model


@operation("load_state_dict(cloned)")
def loaded_cloned(model: Any, workspace: Workspace) -> Any:
    """Load a state dict whose tensors were cloned, one for each name."""
    model.load_state_dict(_cloned(model))
    return model


@operation("load_state_dict(headless, strict=False)")
def loaded_headless(model: Any, workspace: Workspace) -> Any:
    """Load a state dict that does not hold the head."""
    model.load_state_dict(_headless(model, workspace), strict=False)
    return model


@operation("load_state_dict(state, assign=True)")
def assigned(model: Any, workspace: Workspace) -> Any:
    """Assign from a state dict whose two names are one tensor."""
    model.load_state_dict(model.state_dict(), assign=True)
    return model


@operation("load_state_dict(cloned, assign=True)")
def assigned_cloned(model: Any, workspace: Workspace) -> Any:
    """Assign from a state dict whose tensors were cloned, one for each name."""
    model.load_state_dict(_cloned(model), assign=True)
    return model


@operation("load_state_dict(headless, strict=False, assign=True)")
def assigned_headless(model: Any, workspace: Workspace) -> Any:
    """Assign other values from a state dict that does not hold the head."""
    state = {name: tensor + 1 for name, tensor in _headless(model, workspace).items()}
    model.load_state_dict(state, strict=False, assign=True)
    return model


def _cloned(model: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _headless(model: Any, workspace: Workspace) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in model.state_dict().items() if name != workspace.subject.head}
