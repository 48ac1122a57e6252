"""What a device holds and how fast it is at best: public figures, each with its source, or the user's own."""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tallystick.errors import BadInput, nearest, quoted, shown


class Device(NamedTuple):
    """One device. A figure that its maker does not publish is None."""

    name: str
    memory: int  # bytes
    flops: float | None = None  # of dense matrix products in 16 bits, a second
    bandwidth: float | None = None  # bytes a second from its memory
    watts: float | None = None  # at most
    source: str = ""


_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Bytes of a size as people write it; None of anything else.

    >>> parse_size("24GB"), parse_size("24GiB"), parse_size("1.5t"), parse_size("a100")
    (24000000000, 25769803776, 1500000000000, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or (match[3] and not match[2]):
        return None
    step = 1024 if match[3] else 1000
    return round(float(match[1]) * int(step ** " kmgt".index(match[2].lower() or " ")))


def _card(memory: float, tflops: float, gigabytes: float, watts: float | None, source: str) -> Device:
    return Device("", int(memory * 10**9), tflops * 1e12, gigabytes * 1e9, watts, source)


# Memory is in the data sheet's GB, 10^9 bytes. The drivers of most show a little more; the difference is room for what
# no formula knows: the driver's own context and the gaps that an allocator leaves. Rates are without sparsity, which
# doubles NVIDIA's printed ones; of accelerators in two forms, the name alone is the one with the faster link (SXM).
_FIGURES = {
    "v100-16gb": _card(16, 125, 900, 300, "NVIDIA V100 data sheet (SXM2), float16"),
    "v100-32gb": _card(32, 125, 900, 300, "NVIDIA V100 data sheet (SXM2), float16"),
    "t4": _card(16, 65, 300, 70, "NVIDIA T4 data sheet, float16"),
    "a10": _card(24, 125, 600, 150, "NVIDIA A10 data sheet"),
    "a30": _card(24, 165, 933, 165, "NVIDIA A30 data sheet"),
    "a40": _card(48, 149.7, 696, 300, "NVIDIA A40 data sheet"),
    "a6000": _card(48, 154.8, 768, 300, "NVIDIA RTX A6000 data sheet"),
    "a100-40gb": _card(40, 312, 1555, 400, "NVIDIA A100 data sheet (SXM)"),
    "a100-80gb": _card(80, 312, 2039, 400, "NVIDIA A100 data sheet (SXM)"),
    "a100-80gb-pcie": _card(80, 312, 1935, 300, "NVIDIA A100 data sheet (PCIe)"),
    "l4": _card(24, 121, 300, 72, "NVIDIA L4 data sheet"),
    "l40s": _card(48, 362, 864, 350, "NVIDIA L40S data sheet"),
    "h100": _card(80, 989.4, 3350, 700, "NVIDIA H100 data sheet (SXM)"),
    "h100-pcie": _card(80, 756, 2000, 350, "NVIDIA H100 data sheet (PCIe)"),
    "h100-nvl": _card(94, 835.5, 3900, 400, "NVIDIA H100 data sheet (NVL)"),
    "h200": _card(141, 989.4, 4800, 700, "NVIDIA H200 data sheet (SXM)"),
    "b200": _card(180, 2250, 8000, 1000, "NVIDIA HGX B200 data sheet"),
    "rtx3090": _card(24, 71, 936, 350, "NVIDIA GA102 whitepaper, float32 accumulation"),
    "rtx4080": _card(16, 97.5, 716.8, 320, "NVIDIA Ada whitepaper, float32 accumulation"),
    "rtx4090": _card(24, 165.2, 1008, 450, "NVIDIA Ada whitepaper, float32 accumulation"),
    "rtx5090": _card(32, 209.5, 1792, 575, "NVIDIA RTX Blackwell whitepaper, float32 accumulation"),
    "mi250x": _card(128, 383, 3276.8, 560, "AMD Instinct MI250X data sheet (two dies)"),
    "mi300x": _card(192, 1307.4, 5300, 750, "AMD Instinct MI300X data sheet"),
    "mi325x": _card(256, 1307.4, 6000, 1000, "AMD Instinct MI325X data sheet"),
    "tpu-v4": _card(32, 275, 1228, 192, "Google Cloud documentation, TPU v4"),
    "tpu-v5e": _card(16, 197, 819, None, "Google Cloud documentation, TPU v5e"),
    "tpu-v5p": _card(95, 459, 2765, None, "Google Cloud documentation, TPU v5p"),
    "tpu-v6e": _card(32, 918, 1600, None, "Google Cloud documentation, TPU v6e"),
}
DEVICES = {name: device._replace(name=name) for name, device in _FIGURES.items()}
_ALIASES = {"a100": "a100-80gb", "v100": "v100-32gb", "h100-80gb": "h100", "rtx-a6000": "a6000"}
# What drivers write around a name: NVIDIA A100-SXM4-80GB, Tesla T4, NVIDIA H100 80GB HBM3.
_AROUND = re.compile(r"nvidia|tesla|geforce|sxm\d?|hbm\d?|[^a-z0-9]")


def device_of(given: str | int | Mapping[str, Any] | Device) -> Device:
    """The device that the user means.

    Args:
        given: a name of `DEVICES`; bytes, as a number or such as ``"24GB"`` and ``"24GiB"``; ``"auto"``, this machine's
            first CUDA device or else its RAM; or figures of one's own, as a mapping with ``memory`` and, where known,
            ``name``, ``flops`` (a second), ``bandwidth`` (bytes a second), ``watts``.

    Raises:
        BadInput: for what is none of these, with the nearest names.

    >>> device_of("RTX 4090").memory, device_of("24GiB").memory
    (24000000000, 25769803776)
    """
    if isinstance(given, Device):
        return given
    if isinstance(given, Mapping):
        return _own(given)
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str):
        raise BadInput(f"the device is {shown(given)}, expected a name, or bytes such as 24GB")
    if given.lower() == "auto":
        return this_machine()
    word = _AROUND.sub("", given.lower())
    for name in (*DEVICES, *_ALIASES):
        if word == name.replace("-", ""):
            return DEVICES[_ALIASES.get(name, name)]
    size = parse_size(given)
    if size is None:
        raise BadInput(
            f"no device is called {quoted(given)}{nearest(given, DEVICES)}; or say its memory, such as 24GB or 24GiB"
        )
    if size < 1:
        raise BadInput(f"a device of {quoted(given)} holds nothing")
    return Device(given, size, source="as given")


_OWN = ("name", "memory", "flops", "bandwidth", "watts")


def _own(figures: Mapping[str, Any]) -> Device:
    """A device by the user's figures."""
    for key in figures:
        if key not in _OWN:
            raise BadInput(f"a device has no {shown(key)}{nearest(str(key), _OWN)}; it has {', '.join(_OWN)}")
    memory = figures.get("memory")
    size = parse_size(str(memory)) if isinstance(memory, int | str) and not isinstance(memory, bool) else None
    if not size:
        raise BadInput(f"a device's memory is {shown(memory)}, expected bytes, or a size such as 24GB")
    rates = {}
    for key in ("flops", "bandwidth", "watts"):
        value = figures.get(key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
        ):
            raise BadInput(f"a device's {key} is {shown(value)}, expected a positive number")
        rates[key] = value
    return Device(str(figures.get("name", memory)), size, **rates, source="as given")


def this_machine() -> Device:
    """The first CUDA device that its driver shows, or else this machine's RAM."""
    found = _first_cuda_device()
    if found is not None:
        name, memory = found
        try:
            return device_of(name)._replace(memory=memory)
        except BadInput:  # a card that the table lacks
            return Device(name, memory, source="its driver")
    if not hasattr(os, "sysconf"):
        raise BadInput("this machine has no CUDA device, and does not tell its RAM: say bytes, such as 24GB")
    return Device("RAM", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), source="the operating system")


def _first_cuda_device() -> tuple[str, int] | None:
    """Name and bytes of the first device, from the driver itself: torch would take seconds to say the same."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    calls = (
        (driver.cuInit, 0),
        (driver.cuDeviceGet, ctypes.byref(device), 0),
        (driver.cuDeviceGetName, name, 255, device),
        (driver.cuDeviceTotalMem_v2, ctypes.byref(memory), device),
    )
    if any(call(*arguments) for call, *arguments in calls):
        return None
    return name.value.decode(errors="replace"), memory.value
