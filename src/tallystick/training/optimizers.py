"""The optimizers of a run: AdamW, or Muon for the matrices of the layers and AdamW for the rest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tallystick.errors import BadInput
from tallystick.training.config import TrainConfig
from tallystick.training.groups import Groups, optimizer_groups

MUON: Any = getattr(torch.optim, "Muon", None)  # since torch 2.9


def refuse_missing(config: TrainConfig) -> None:
    """Refuse an optimizer that this PyTorch does not have, before anything is made ready for it."""
    if config.optimizer == "muon" and MUON is None:
        raise BadInput(
            f"optimizer = 'muon' needs torch 2.9 or newer; this is {torch.__version__}: pip install -U 'torch>=2.9'",
            code="missing-package",
        )


def optimizers_of(config: TrainConfig, model: nn.Module) -> tuple[list[torch.optim.Optimizer], Groups]:
    """What steps the parameters of a model, and the groups that they are in.

    Muon (Jordan et al. 2024) makes each update orthogonal. Stacked experts are no matrix and stay with AdamW.
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
    """What an optimizer keeps of a parameter after its first step, as zeros: to be filled from a checkpoint."""

    def like() -> Tensor:
        return torch.zeros_like(parameter).detach()

    if MUON is not None and isinstance(optimizer, MUON):
        return {"momentum_buffer": like()}
    step = torch.zeros((), device=parameter.device)  # where the fused kernel counts
    return {"step": step, "exp_avg": like(), "exp_avg_sq": like()}
