"""The learning rate schedules: warm-up, then cosine, linear, WSD or constant."""

from __future__ import annotations

import math

from tallystick.training.config import TrainConfig


def rate(config: TrainConfig, step: int) -> float:
    """Return the factor of the learning rate at a step, counted from 0.

    Warm-up is linear, up to 1. Then ``cosine`` and ``linear`` decay to `final` over the rest.
    ``wsd`` (Hu et al. 2024, "MiniCPM", section 4) stays at 1 until the last `decay` of the steps
    and then decays linearly to `final`. ``constant`` stays at 1.
    """
    if step < config.warmup:
        return (step + 1) / (config.warmup + 1)
    rest = max(1, config.steps - config.warmup)
    past = min(1.0, (step - config.warmup) / rest)
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "cosine":
        return config.final + (1 - config.final) * (1 + math.cos(math.pi * past)) / 2
    if config.schedule == "wsd":
        length = max(1, config.steps * config.decay)
        past = max(0.0, (step - (config.steps - length)) / length)
    return 1 - (1 - config.final) * past
