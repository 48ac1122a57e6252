"""The learning rate of each step."""

from __future__ import annotations

import math

from tallystick.training.config import TrainConfig


def rate(config: TrainConfig, step: int) -> float:
    """What the learning rate is multiplied by at a step, counted from 0: from near 0 up to 1 and down to `final`.

    Warm-up is linear. Then ``cosine`` and ``linear`` decay over the rest; ``wsd`` (Hu et al. 2024, "MiniCPM", section 4)
    stays until the last `decay` of the steps and goes down in a straight line; ``constant`` stays.
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
