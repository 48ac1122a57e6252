"""Operations: place a model on devices with accelerate."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import Workspace, operation


@operation("init_empty_weights", "accelerate")
def empty_weights(model: Any, workspace: Workspace) -> Any:
    """Build the model without values."""
    from accelerate import init_empty_weights

    with init_empty_weights():
        return workspace.fresh()


@operation("dispatch_model", "accelerate")
def dispatched(model: Any, workspace: Workspace) -> Any:
    """Dispatch to the CPU, with the hooks that several devices would get."""
    from accelerate import dispatch_model

    places = dict.fromkeys((name for name, _ in model.named_children()), "cpu")
    return dispatch_model(model, places, main_device="cpu", force_hooks=True)


@operation("cpu_offload", "accelerate")
def offloaded(model: Any, workspace: Workspace) -> Any:
    """Keep the weights in a state dict, and bring each to its module for its forward alone."""
    import torch
    from accelerate import cpu_offload

    return cpu_offload(model, torch.device("cpu"))
