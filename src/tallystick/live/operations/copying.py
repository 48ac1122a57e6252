"""Copying a model, and saving it to load it again: with Python, torch and safetensors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tallystick.live.operations.registry import Desk, operation


@operation("copy.deepcopy(model)", "copy")
def deepcopy_whole(model: Any, desk: Desk) -> Any:
    """Copy the model as a whole."""
    return copy.deepcopy(model)


@operation("copy.deepcopy of the parts", "copy")
def deepcopy_parts(model: Any, desk: Desk) -> Any:
    """Copy the body and the head one after the other."""
    for name, part in list(model.named_children()):
        setattr(model, name, copy.deepcopy(part))
    return model


@operation("pickle.loads(pickle.dumps(model))", "pickle")
def pickled(model: Any, desk: Desk) -> Any:
    """Pickle the model as a whole."""
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - our own


@operation("torch.save, torch.load: the whole model")
def saved_whole(model: Any, desk: Desk) -> Any:
    """Save the module itself, and load it with weights_only=False."""
    import torch

    torch.save(model, desk.folder / "model.pt")
    return torch.load(desk.folder / "model.pt", weights_only=False)


@operation("torch.save, torch.load: the state dict")
def saved_state(model: Any, desk: Desk) -> Any:
    """Save the state dict, load it with weights_only=True into a fresh model."""
    import torch

    torch.save(model.state_dict(), desk.folder / "state.pt")
    fresh = desk.fresh()
    fresh.load_state_dict(torch.load(desk.folder / "state.pt", weights_only=True))
    return fresh


@operation("torch.distributed.checkpoint save, load")
def saved_distributed(model: Any, desk: Desk) -> Any:
    """Save the state dict as a distributed checkpoint, load it into a fresh model."""
    from torch.distributed import checkpoint

    fresh = desk.fresh()
    state = fresh.state_dict()
    checkpoint.save(model.state_dict(), checkpoint_id=desk.folder / "dcp", no_dist=True)
    checkpoint.load(state, checkpoint_id=desk.folder / "dcp", no_dist=True)
    fresh.load_state_dict(state)
    return fresh


@operation("save_file(state)", "safetensors", instead="save_model, load_model")
def save_file(model: Any, desk: Desk) -> Any:
    """Save the state dict as it is."""
    from safetensors.torch import save_file as save

    save(model.state_dict(), desk.folder / "model.safetensors")
    return model


@operation("save_model, load_model", "safetensors")
def save_model(model: Any, desk: Desk) -> Any:
    """Save the module, and load it into a fresh one."""
    from safetensors import torch as safetensors

    fresh = desk.fresh()
    safetensors.save_model(model, str(desk.folder / "model.safetensors"))
    safetensors.load_model(fresh, desk.folder / "model.safetensors")
    return fresh
