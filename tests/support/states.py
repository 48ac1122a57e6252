"""What weights, gradients and the states of optimizers take in memory, of real models after a real
step.
"""

from __future__ import annotations

from typing import Any

import peft
import torch

from reference import build

OPTIMIZERS = {
    "adamw": torch.optim.AdamW,
    "adamw-fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adafactor": torch.optim.Adafactor,
}


def real(values: dict[str, Any], dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    """The model of a config in memory: its tensors hold zeros, its ties hold."""
    model = build(values).to(dtype).to_empty(device="cpu")
    model.tie_weights()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    return model


def held(tensors: Any) -> int:
    """Bytes of tensors; of a quantised one, those of its parts."""
    total = 0
    for tensor in tensors:
        inner = tensor.__tensor_flatten__()[0] if hasattr(tensor, "__tensor_flatten__") else ()
        total += held(getattr(tensor, name) for name in inner) if inner else tensor.nbytes
    return total


def state_of(optimizer: torch.optim.Optimizer) -> int:
    values = [value for state in optimizer.state.values() for value in state.values()]
    return held(value for value in values if isinstance(value, torch.Tensor))


def stepped(model: torch.nn.Module, make: Any) -> torch.optim.Optimizer:
    """An optimizer of what is trained, after one step."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = make(trained)
    optimizer.step()
    return optimizer


# -- what is measured once, and committed ---------------------------------------------------------


def of_a_step(values: dict[str, Any], name: str, dtype: str) -> tuple[int, int, int]:
    """Bytes of weights, gradients and an optimizer's state."""
    model = real(values, getattr(torch, dtype))
    optimizer = stepped(model, OPTIMIZERS[name])
    gradients = (parameter.grad for parameter in model.parameters() if parameter.requires_grad)
    return held(model.parameters()), held(gradients), state_of(optimizer)


def of_adapters(values: dict[str, Any], rank: int, dtype: str) -> tuple[int, int, int] | None:
    """Bytes of weights, of the LoRA adapters on all linear layers, and of the state of AdamW that
    trains these.

    None of a model that PEFT adapts in part alone, as Mamba's.
    """
    model = real(values, getattr(torch, dtype))
    base = held(model.parameters())
    try:
        adapted = peft.get_peft_model(model, peft.LoraConfig(r=rank, target_modules="all-linear"))
    except ValueError as error:
        if "incompatible with Mamba-based models" not in str(error):
            raise
        return None
    trained = held(parameter for parameter in adapted.parameters() if parameter.requires_grad)
    return base, trained, state_of(stepped(adapted, torch.optim.AdamW))
