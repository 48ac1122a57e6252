"""Operations: copy a model, or save and load it, with Python, torch and safetensors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tallystick.live.operations.registry import Workspace, operation


@operation("copy.deepcopy(model)", "copy")
def deepcopy_whole(model: Any, workspace: Workspace) -> Any:
    """Copy the model as a whole."""
    return copy.deepcopy(model)


@operation("copy.deepcopy of the parts", "copy")
def deepcopy_parts(model: Any, workspace: Workspace) -> Any:
    """Copy the body and the head one after the other."""
    for name, part in list(model.named_children()):
        setattr(model, name, copy.deepcopy(part))
    return model


@operation("pickle.loads(pickle.dumps(model))", "pickle")
def pickled(model: Any, workspace: Workspace) -> Any:
    """Pickle the model as a whole."""
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - our own


@operation("torch.save, torch.load: the whole model")
def saved_whole(model: Any, workspace: Workspace) -> Any:
    """Save the module itself, and load it with weights_only=False."""
    import torch

    torch.save(model, workspace.folder / "model.pt")
    return torch.load(workspace.folder / "model.pt", weights_only=False)


@operation("torch.save, torch.load: the state dict")
def saved_state(model: Any, workspace: Workspace) -> Any:
    """Save the state dict, load it with weights_only=True into a fresh model."""
    import torch

    torch.save(model.state_dict(), workspace.folder / "state.pt")
    fresh = workspace.fresh()
    fresh.load_state_dict(torch.load(workspace.folder / "state.pt", weights_only=True))
    return fresh


@operation("torch.distributed.checkpoint save, load")
def saved_distributed(model: Any, workspace: Workspace) -> Any:
    """Save the state dict as a distributed checkpoint, load it into a fresh model."""
    from torch.distributed import checkpoint

    fresh = workspace.fresh()
    state = fresh.state_dict()
    checkpoint.save(model.state_dict(), checkpoint_id=workspace.folder / "dcp", no_dist=True)
    checkpoint.load(state, checkpoint_id=workspace.folder / "dcp", no_dist=True)
    fresh.load_state_dict(state)
    return fresh


@operation("save_file(state)", "safetensors", instead="save_model, load_model")
def save_file(model: Any, workspace: Workspace) -> Any:
    """Save the state dict as it is."""
    from safetensors.torch import save_file as save

    save(model.state_dict(), workspace.folder / "model.safetensors")
    return model


@operation("save_model, load_model", "safetensors")
def save_model(model: Any, workspace: Workspace) -> Any:
    """Save the module, and load it into a fresh one."""
    from safetensors import torch as safetensors

    fresh = workspace.fresh()
    safetensors.save_model(model, str(workspace.folder / "model.safetensors"))
    safetensors.load_model(fresh, workspace.folder / "model.safetensors")
    return fresh
