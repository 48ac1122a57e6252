"""Operations: add LoRA to a model with PEFT, and merge it."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import NotApplicable, Workspace, operation

TYING = "LoRA, modules_to_save=[head], ensure_weight_tying"


@operation("LoRA", "peft")
def lora(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers."""
    return _lora(model, workspace)


@operation("LoRA, merge_and_unload", "peft")
def lora_merged(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, merge it."""
    return _lora(model, workspace).merge_and_unload()


@operation("LoRA, modules_to_save=[head]", "peft", instead=TYING)
def lora_saving_head(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, and train the head in full."""
    return _lora(model, workspace, modules_to_save=[_head(workspace)])


@operation("LoRA, modules_to_save=[head], merge_and_unload", "peft", instead=f"{TYING}, merge_and_unload")
def lora_saving_head_merged(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, train the head in full, merge."""
    return _lora(model, workspace, modules_to_save=[_head(workspace)]).merge_and_unload()


@operation("LoRA, modules_to_save=[embedding, head]", "peft")
def lora_saving_both(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, and train embedding and head in full."""
    embedding = workspace.subject.embedding_module.rpartition(".")[2]
    return _lora(model, workspace, modules_to_save=[embedding, _head(workspace)])


@operation(TYING, "peft")
def lora_saving_tied(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, and train embedding and head in full, as one."""
    return _lora(model, workspace, modules_to_save=[_head(workspace)], ensure_weight_tying=True)


@operation(f"{TYING}, merge_and_unload", "peft")
def lora_saving_tied_merged(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers, train embedding and head in full, as one, merge."""
    return _lora(model, workspace, modules_to_save=[_head(workspace)], ensure_weight_tying=True).merge_and_unload()


@operation("LoRA on the head", "peft")
def lora_on_head(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers and on the head."""
    return _lora(model, workspace, target_modules=[*workspace.linears(model), workspace.subject.head_module])


@operation("LoRA on the head, merge_and_unload", "peft")
def lora_on_head_merged(model: Any, workspace: Workspace) -> Any:
    """Put LoRA on the linear layers and on the head, merge it."""
    return _lora(
        model, workspace, target_modules=[*workspace.linears(model), workspace.subject.head_module]
    ).merge_and_unload()


def _head(workspace: Workspace) -> str:
    return workspace.subject.head_module.rpartition(".")[2]


def _lora(model: Any, workspace: Workspace, **settings: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    linears = workspace.linears(model)
    if not linears:
        raise NotApplicable(f"{type(model).__name__} has no linear layer but its head")
    transposed = type(model.get_submodule(linears[0])).__name__ == "Conv1D"
    given = {"target_modules": linears, "fan_in_fan_out": transposed, "r": 2, "init_lora_weights": False, **settings}
    return get_peft_model(model, LoraConfig(**given))
