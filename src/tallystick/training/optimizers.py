"""Optimizers: AdamW, or Muon for the layers' matrices and AdamW for the rest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tallystick.errors import BadInput
from tallystick.training.config import TrainConfig
from tallystick.training.groups import Groups, optimizer_groups

MUON: Any = getattr(torch.optim, "Muon", None)  # since torch 2.9


def refuse_missing(config: TrainConfig) -> None:
    """Raise BadInput if this PyTorch lacks the optimizer, before anything is prepared."""
    if config.optimizer == "muon" and MUON is None:
        raise BadInput(
            f"optimizer = 'muon' needs torch 2.9 or newer; this is {torch.__version__}: pip install -U 'torch>=2.9'",
            code="missing-package",
        )


def optimizers_of(config: TrainConfig, model: nn.Module) -> tuple[list[torch.optim.Optimizer], Groups]:
    """Return the optimizers for a model's parameters, and the parameter groups.

    Muon (Jordan et al. 2024) orthogonalises updates. Stacked expert weights are 3-D, not
    matrices, so AdamW updates them.

    Args:
        config: config of the run.
        model: the decoder, before the first step.

    Raises:
        BadInput: if two Parameters share memory.
    """
    groups = optimizer_groups(model, config.weight_decay, decay_embedding=config.decay_embedding)
    lists, found = groups.lists(), list[torch.optim.Optimizer]()
    if config.optimizer == "muon":
        matrices = [parameter for parameter in groups.decayed.values() if parameter.ndim == 2]
        others = [parameter for parameter in groups.decayed.values() if parameter.ndim != 2]
        found.append(MUON(matrices, lr=config.muon_rate, weight_decay=config.weight_decay))
        lists[0]["params"] = others
        lists = [group for group in lists if group["params"]]
    betas = config.beta1, config.beta2
    found.append(torch.optim.AdamW(lists, lr=config.learning_rate, betas=betas, fused=True))
    for optimizer in found:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return found, groups


def kept_by(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Any]:
    """Return the state that an optimizer keeps per parameter, as zeros to be filled."""

    def like() -> Tensor:
        return torch.zeros_like(parameter).detach()

    if MUON is not None and isinstance(optimizer, MUON):
        return {"momentum_buffer": like()}
    step = torch.zeros((), device=parameter.device)  # on the device, as the fused kernel needs
    return {"step": step, "exp_avg": like(), "exp_avg_sq": like()}
