"""Speed of a model on a device: time of a run, energy, and MFU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tallystick.answers.devices import Device
from tallystick.answers.reconcile.claimed_count import read_claim
from tallystick.errors import BadInput, nearest, shown

MODES = ("training", "inference")


@dataclass(frozen=True)
class Rate:
    """Throughput of one device. A None was neither given nor can be derived."""

    mode: str  # training | inference
    flops_per_token: int
    device: str | None
    peak_flops: float | None  # FLOP/s of dense products in 16 bits
    mfu: float | None  # model FLOPs utilisation: the share of the peak that the model's own FLOPs reach
    tokens_per_second: float | None
    tokens: int | None  # of the whole run
    flops: int | None  # of the whole run
    seconds: float | None
    joules: float | None  # at the device's full power
    source: str  # of the device's figures
    devices: int = 1

    @property
    def device_hours(self) -> float | None:
        """Hours of one device for the whole run, as model cards state them (GPU-hours)."""
        return None if self.seconds is None else self.seconds / 3600

    @property
    def wall_seconds(self) -> float | None:
        """Duration of the run on all devices, without losses from communication."""
        return None if self.seconds is None else self.seconds / self.devices

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the run. Keys are a contract: added, never renamed."""
        return {**asdict(self), "device_hours": self.device_hours, "wall_seconds": self.wall_seconds}


def check_mode(mode: object) -> None:
    """Raise `BadInput` unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise BadInput(
            f"mode is {shown(mode)}, expected one of {', '.join(MODES)}{nearest(str(mode), MODES)}", code="bad-value"
        )


def rate(
    flops_per_token: Mapping[str, int],
    *,
    mode: str = "training",
    device: Device | None = None,
    mfu: float | None = None,
    tokens_per_second: float | None = None,
    tokens: int | str | None = None,
    devices: int | None = None,
) -> Rate:
    """Derive the speed from the MFU, or the MFU from the speed; then time and energy.

    MFU is as in PaLM's appendix B: the model's FLOPs, without recomputation, over the peak. Without
    an MFU and a speed, the device runs at its peak: no run is faster.

    Args:
        flops_per_token: FLOPs per token, by mode.
        mode: ``"training"`` (both passes) or ``"inference"`` (forward pass).
        device: the device that computes.
        mfu: share of the device's peak, above 0 and at most 1.
        tokens_per_second: measured on one device.
        tokens: of the whole run, as a number or text such as ``"300B"``.
        devices: number of such devices; 1 by default.

    Returns:
        The speed of one device in tokens and FLOPs, and the time and energy of the run.

    Raises:
        BadInput: for invalid or contradictory numbers, and for a device without a known rate.

    >>> rate({"training": 6 * 10**9}, tokens="1B", tokens_per_second=10_000).seconds
    100000.0
    """
    check_mode(mode)
    if mfu is not None and tokens_per_second is not None:
        raise BadInput("mfu and tokens_per_second set the same thing: give one of them", code="conflicting-options")
    for what, number in (("mfu", mfu), ("tokens_per_second", tokens_per_second)):
        if number is not None and (isinstance(number, bool) or not _positive(number)):
            raise BadInput(f"{what} is {shown(number)}, expected a positive number", code="bad-value")
    if mfu is not None and mfu > 1:
        raise BadInput(f"mfu is {shown(mfu)}, expected a share of the device's peak, such as 0.4", code="bad-value")
    if device is None and mfu is not None:
        raise BadInput("mfu needs a device: it is a share of the device's peak", code="conflicting-options")
    if devices is not None and (isinstance(devices, bool) or not isinstance(devices, int) or devices < 1):
        raise BadInput(f"devices is {shown(devices)}, expected a number from 1 on", code="bad-value")
    count = None if tokens is None else _count(tokens)
    peak = None if device is None else device.flops
    if device is not None and peak is None and tokens_per_second is None:
        raise BadInput(
            f"the speed of {device.name} is unknown: use a known device, or give tokens_per_second",
            code="no-answer",
        )
    if peak is not None:
        if tokens_per_second is None:
            mfu = 1.0 if mfu is None else mfu
            tokens_per_second = peak * mfu / flops_per_token[mode]
        else:
            mfu = tokens_per_second * flops_per_token[mode] / peak
            if mfu > 1 and device is not None:
                raise BadInput(
                    f"{tokens_per_second:,.0f} tokens per second is {mfu:,.1f} times the peak of {device.name}: give"
                    " the rate of one device",
                    code="bad-value",
                )
    seconds = None if count is None or tokens_per_second is None else count / tokens_per_second
    watts = None if device is None else device.watts
    return Rate(
        mode,
        flops_per_token[mode],
        None if device is None else device.name,
        peak,
        mfu,
        tokens_per_second,
        count,
        None if count is None else count * flops_per_token[mode],
        seconds,
        None if seconds is None or watts is None else seconds * watts,
        "" if device is None else device.source,
        devices or 1,
    )


def _count(tokens: int | str) -> int:
    """Read a token count, in the notation of parameter counts."""
    try:
        return read_claim(tokens).value
    except BadInput:
        raise BadInput(
            f"tokens is {shown(tokens)}, expected a number up to 10^18, such as 300B, 1.5e9 or 1,000,000",
            code="bad-value",
        ) from None


def _positive(number: object) -> bool:
    return isinstance(number, int | float) and 0 < number < math.inf
