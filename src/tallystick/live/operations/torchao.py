"""Operations: quantise linear modules with torchao."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import NotApplicable, Workspace, operation


@operation("quantize_, int8 weights", "torchao", instead="quantize_, int8 weights, head left out", on="llama")
def quantised(model: Any, workspace: Workspace) -> Any:
    """Quantise the weights of all nn.Linear modules, the head among them."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    quantize_(model, Int8WeightOnlyConfig(version=2))
    return model


@operation("quantize_, int8 weights, head left out", "torchao", on="llama")
def quantised_but_head(model: Any, workspace: Workspace) -> Any:
    """Quantise the weights of all nn.Linear modules but the head."""
    from torch import nn
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    chosen = {name for name in workspace.linears(model) if isinstance(model.get_submodule(name), nn.Linear)}
    if not chosen:
        raise NotApplicable(f"{type(model).__name__} has no nn.Linear but its head")
    quantize_(model, Int8WeightOnlyConfig(version=2), filter_fn=lambda _, name: name in chosen)
    return model
