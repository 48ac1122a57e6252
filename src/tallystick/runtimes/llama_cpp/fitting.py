"""`--gpu-layers auto`: the layers that llama.cpp puts on a device, as its ``--fit`` chooses them.

The rules are those of `common_params_fit_impl` in common/fit.cpp, for one device: first a shorter
context, if none was asked for; then layers, the last ones and the head first; of a mixture of
experts all layers without their routed experts, and then as many with them as fit. A part of one
more layer, which it also tries, is left on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.runtimes.engines import MIB, Rank, Settings
from tallystick.runtimes.llama_cpp.buffers import PADDED, Buffers

MARGIN = 1024 * MIB  # bytes left free on the device: --fit-target
SHORTEST = 4096  # tokens of the context that is tried last: --fit-ctx


def fitted(rank: Rank, settings: Settings, free: int) -> Settings:
    """Return the settings with the context, layers and experts that ``--fit`` chooses.

    Args:
        rank: the whole model.
        settings: with `layers_fitted`.
        free: bytes free on the device.
    """
    target = free - MARGIN

    def used(**changed: Any) -> int:
        return Buffers(rank, settings._replace(**changed)).device

    if used() <= target:
        return settings
    if settings.length_fitted:
        settings = settings._replace(max_model_len=_context(settings.max_model_len or 0, used, target))
        if used() <= target:
            return settings
    count = len(rank.layers)
    if not any(rank.routed_layers):
        return settings._replace(
            layers_on_device=_most(count + 1, lambda layers: used(layers_on_device=layers) <= target)
        )
    layers = _most(count + 1, lambda layers: used(layers_on_device=layers, experts_on_host=count) <= target)
    if layers <= count:  # even without experts, not all layers fit
        return settings._replace(layers_on_device=layers, experts_on_host=count)
    whole = _most(count, lambda kept: used(experts_on_host=count - kept) <= target)
    return settings._replace(experts_on_host=count - whole)


def _context(longest: int, used: Callable[..., int], target: int) -> int:
    """Return the context with which all layers fit, interpolated, or the shortest that is tried."""
    shortest = min(SHORTEST, longest)
    least, most = used(max_model_len=shortest), used()
    if least >= target or most <= least:
        return shortest
    between = shortest + (longest - shortest) * (target - least) // (most - least)
    return max(between - between % PADDED, shortest)


def _most(high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `high` that fits; 0 if none does. More layers take more."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
