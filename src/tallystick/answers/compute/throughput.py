"""How fast a device does a model's operations: how long a run takes, what it draws, and what share of the peak it reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.answers.devices import Device
from tallystick.answers.reconcile.claimed_count import read_claim
from tallystick.errors import BadInput, nearest, shown


@dataclass(frozen=True)
class Rate:
    """Tokens on one device. None stands for what was neither said nor follows."""

    mode: str  # training | inference
    flops_per_token: int
    device: str | None
    peak_flops: float | None  # a second, of dense products in 16 bits
    mfu: float | None  # model FLOPs utilisation: the share of the peak that the model's own operations reach
    tokens_per_second: float | None
    tokens: int | None  # of the run
    flops: int | None  # of the run
    seconds: float | None
    joules: float | None  # at the device's full power
    source: str  # of the device's figures


def rate(
    flops_per_token: Mapping[str, int],
    *,
    mode: str = "training",
    device: Device | None = None,
    mfu: float | None = None,
    tokens_per_second: float | None = None,
    tokens: int | str | None = None,
) -> Rate:
    """What follows from what is said: the speed from the MFU, or the MFU from the speed; time and energy from either.

    MFU is that of PaLM's appendix B: the operations of the model, nothing that is computed twice, over the peak. Where
    neither it nor the speed is said, the device's peak is taken: no run is faster.

    Args:
        flops_per_token: operations for each token, by mode.
        mode: ``"training"``, both passes, or ``"inference"``, the forward pass.
        device: what computes.
        mfu: share of its peak, above 0 and at most 1.
        tokens_per_second: as measured on one device.
        tokens: of the whole run, as a number or such as ``"300B"``.

    Raises:
        BadInput: for numbers that make no sense or contradict each other, and for a device without a known rate.
    """
    if mode not in flops_per_token:
        raise BadInput(
            f"mode is {shown(mode)}, expected one of {', '.join(flops_per_token)}{nearest(str(mode), flops_per_token)}",
            code="bad-value",
        )
    if mfu is not None and tokens_per_second is not None:
        raise BadInput("mfu and tokens_per_second say the same: give one of them", code="conflicting-options")
    for what, number in (("mfu", mfu), ("tokens_per_second", tokens_per_second)):
        if number is not None and (isinstance(number, bool) or not _positive(number)):
            raise BadInput(f"{what} is {shown(number)}, expected a positive number", code="bad-value")
    if mfu is not None and mfu > 1:
        raise BadInput(f"mfu is {shown(mfu)}, expected a share of the device's peak, such as 0.4", code="bad-value")
    if device is None and mfu is not None:
        raise BadInput("mfu is a share of a device's peak: name the device", code="conflicting-options")
    count = None if tokens is None else _count(tokens)
    peak = None if device is None else device.flops
    if device is not None and peak is None and tokens_per_second is None:
        raise BadInput(
            f"the rate of {device.name} is not known: name a device of the table, or give tokens_per_second",
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
                    f"{tokens_per_second:,.0f} tokens a second are {mfu:,.1f} times the peak of {device.name}:"
                    " say those of one device",
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
    )


def _count(tokens: int | str) -> int:
    """Tokens as people write them: as they write parameters."""
    try:
        return read_claim(tokens).value
    except BadInput:
        raise BadInput(
            f"tokens is {shown(tokens)}, expected a number up to 10^18, such as 300B, 1.5e9 or 1,000,000",
            code="bad-value",
        ) from None


def _positive(number: object) -> bool:
    return isinstance(number, int | float) and 0 < number < math.inf
