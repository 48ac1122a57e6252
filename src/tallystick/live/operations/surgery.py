"""Operations: replace, parametrise or prune the LM head with torch."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import Workspace, operation


@operation("head.weight = nn.Parameter(embedding.weight.data)")
def wrapped_again(model: Any, workspace: Workspace) -> Any:
    """Tie by the data, where the Parameter is meant."""
    from torch import nn

    workspace.head(model).weight = nn.Parameter(workspace.embedding(model).weight.data)
    return model


@operation("model.head = nn.Linear(...)")
def replaced_head(model: Any, workspace: Workspace) -> Any:
    """Replace the head by one of the same shape."""
    return workspace.replace_head(model, workspace.other_head(model))


@operation("model.head = nn.Sequential(nn.Linear(...))")
def replaced_by_sequential(model: Any, workspace: Workspace) -> Any:
    """Replace the head by a Sequential that holds one of the same shape."""
    from torch import nn

    return workspace.replace_head(model, nn.Sequential(workspace.other_head(model)))


@operation("parametrizations.weight_norm(head)")
def parametrized(model: Any, workspace: Workspace) -> Any:
    """Split the head's weight into direction and length."""
    from torch.nn.utils import parametrizations

    parametrizations.weight_norm(workspace.head(model))
    return model


@operation("parametrize.register_parametrization(head)")
def parametrized_by_itself(model: Any, workspace: Workspace) -> Any:
    """Compute the head's weight from what it was."""
    from torch import nn
    from torch.nn.utils import parametrize

    parametrize.register_parametrization(workspace.head(model), "weight", nn.Identity())
    return model


@operation("prune.l1_unstructured(head)")
def pruned(model: Any, workspace: Workspace) -> Any:
    """Mask half of the head's weights."""
    from torch.nn.utils import prune

    prune.l1_unstructured(workspace.head(model), "weight", 0.5)
    return model


@operation("prune.l1_unstructured(head), prune.remove")
def pruned_for_good(model: Any, workspace: Workspace) -> Any:
    """Mask half of the head's weights and make that permanent."""
    from torch.nn.utils import prune

    prune.remove(prune.l1_unstructured(workspace.head(model), "weight", 0.5), "weight")
    return model
