"""Memory and peak rates of devices: public figures with their sources, or the user's own."""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tallystick.core.units import parse_size
from tallystick.errors import BadInput, nearest, quoted, shown


class Device(NamedTuple):
    """One device. A figure that its maker does not publish is None."""

    name: str
    memory: int  # bytes; `memory_by` says by whose figure
    flops: float | None = None  # FLOP/s of dense matrix products in 16 bits
    bandwidth: float | None = None  # memory bandwidth in bytes per second
    watts: float | None = None  # maximum power
    source: str = ""  # of the rates
    memory_by: str = ""  # "its driver" or "the data sheet"; "" for a device given in bytes
    context: int = 0  # bytes of `memory` that the driver reserves for each process
    flops_16_sums: float | None = None  # as `flops`, summed in 16 bits, where that is faster
    flops_8: float | None = None  # as `flops`, of products in 8 bits, the faster of integers and floats
    flops_4: float | None = None  # as `flops`, of products of 4-bit floats

    @property
    def room(self) -> int:
        """Bytes available for tensors."""
        return self.memory - self.context


def _card(memory: float, tflops: float, gigabytes: float, watts: float | None, source: str) -> Device:
    return Device("", int(memory * 10**9), tflops * 1e12, gigabytes * 1e9, watts, source)


# Rates are without sparsity, which doubles NVIDIA's printed figures. If an accelerator has two
# forms, the plain name is the form with the faster link (SXM). Memory is from the data sheet, in GB
# (10^9).
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
    "rtx3080": _card(10, 59.5, 760.3, 320, "NVIDIA GA102 whitepaper, float32 accumulation"),
    "rtx3090": _card(24, 71, 936, 350, "NVIDIA GA102 whitepaper, float32 accumulation"),
    # On GeForce cards of this generation, 16-bit products run at twice the float32 rate, here 29.15
    # TFLOP/s.
    "rtx4070": _card(12, 58.3, 504.2, 200, "NVIDIA RTX 4070 specifications, float32 accumulation"),
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
MIB, GIB = 2**20, 2**30
# Memory that a CUDA program sees, if a public log was found: cuDeviceTotalMem. torch prints it as
# total_memory and in OutOfMemoryError, llama.cpp as VRAM. nvidia-smi shows more: it includes the
# driver's reserve. The figure differs by some MiB between drivers, and newer drivers show less: of
# several figures, the table has the smallest.
_SHOWN = {
    "v100-16gb": 16_130 * MIB,  # total_memory of a Tesla V100-SXM2-16GB; others print 16,160
    "v100-32gb": 32_494 * MIB,  # VRAM of a Tesla V100-SXM2-32GB
    "t4": int(14.56 * GIB),  # Zheng-Chong/CatVTON#133, pytorch/torchtitan PR#3393; older drivers: 14.76
    "a10": 22_587 * MIB,  # total_memory of an NVIDIA A10G, the same memory
    "a40": 45_416 * MIB,  # total_memory of an NVIDIA A40
    "a6000": 48_676 * MIB,  # total_memory of an NVIDIA RTX A6000, by default without ECC
    "a100-40gb": int(39.50 * GIB),  # TianheWu/CoSeR#10; older drivers: 40,536 MiB
    "a100-80gb": 81_151 * MIB,  # VRAM of an NVIDIA A100-SXM4-80GB; 79.25 GiB in levihsu/OOTDiffusion#235
    "a100-80gb-pcie": int(79.14 * GIB),  # an A100 of 80 GB in lianqi1008/Control-GIC#6
    "l4": int(22.03 * GIB),  # ArcInstitute/evo2#190
    "l40s": int(44.40 * GIB),  # an L40, the same memory, in QwenLM/Qwen3-VL#2097; total_memory of an L40S: 45,589 MiB
    "h100": int(79.22 * GIB),  # vllm-project/vllm PR#10511 and PR#12126
    "h100-pcie": 81_008 * MIB,  # total_memory of an NVIDIA H100 PCIe
    "h200": 143_156 * MIB,  # total_memory of an NVIDIA H200
    "b200": int(178.35 * GIB),  # pytorch/ao PR#4002; nvidia-smi: 183,359 MiB (vllm-project/vllm#51494)
    "rtx3080": 10_239 * MIB,  # VRAM of an NVIDIA GeForce RTX 3080 on Windows, whose drivers show more than Linux drivers
    "rtx3090": 24_123 * MIB,  # VRAM of an NVIDIA GeForce RTX 3090; older drivers: 23.58 GiB and more
    "rtx4070": 11_866 * MIB,  # VRAM of an NVIDIA GeForce RTX 4070
    "rtx4080": 16_049 * MIB,  # total_memory of an NVIDIA GeForce RTX 4080
    "rtx4090": 25_262_096_384,  # vram_total; 23.52 GiB in Soul-AILab/SoulX-FlashTalk#5, 23.64 in 3DTopia/Phidias-Diffusion#8
    "rtx5090": 32_109 * MIB,  # VRAM of an NVIDIA GeForce RTX 5090
    "mi250x": 2 * 65_520 * MIB,  # total_memory of each die of an AMD Instinct MI250X
    "mi300x": 196_592 * MIB,  # total_memory of an AMD Instinct MI300X
}  # fmt: skip
# A process's CUDA context: memory in use beyond PyTorch's reservation. It is 0.49 GiB on an RTX
# 4090 (3DTopia/Phidias-Diffusion#8), 0.50 on an L40 (QwenLM/Qwen3-VL#2097), about 0.3 before any
# kernel is loaded (pytorch/pytorch#107667), and 0.13 on a T4 (Zheng-Chong/CatVTON#133). AMD's is
# not known here.
CONTEXT = GIB // 2


# Other rates of the same sources, in dense TFLOP/s: products in 16 bits summed in 16 bits, in 8
# bits (integers or floats), in 4-bit floats. None: no faster than the next wider, or not published.
_RATES: dict[str, tuple[float | None, float | None, float | None]] = {
    "t4": (None, 130, None), "a10": (None, 250, None), "a30": (None, 330, None), "a40": (None, 299.3, None),
    "a6000": (None, 309.7, None), "a100-40gb": (None, 624, None), "a100-80gb": (None, 624, None),
    "a100-80gb-pcie": (None, 624, None), "l4": (None, 242.5, None), "l40s": (None, 733, None),
    "h100": (None, 1978.9, None), "h100-pcie": (None, 1513, None), "h100-nvl": (None, 1671, None),
    "h200": (None, 1978.9, None), "b200": (None, 4500, 9000), "rtx3080": (119, 238, None), "rtx3090": (142, 284, None),
    "rtx4070": (116.6, 233.2, None), "rtx4080": (194.9, 389.9, None), "rtx4090": (330.3, 660.6, None),
    "rtx5090": (419, 838, 1676), "mi250x": (None, 383, None), "mi300x": (None, 2614.9, None),
    "mi325x": (None, 2614.9, None), "tpu-v5e": (None, 394, None), "tpu-v5p": (None, 918, None),
    "tpu-v6e": (None, 1836, None),
}  # fmt: skip


def _described(name: str, card: Device) -> Device:
    """Return a card of the table with its name, its rates, and the memory that its driver shows."""
    context = CONTEXT if card.source.startswith("NVIDIA") else 0
    by = "its driver" if name in _SHOWN else "the data sheet"
    sums, eight, four = (None if rate is None else rate * 1e12 for rate in _RATES.get(name, (None, None, None)))
    return card._replace(
        name=name,
        memory=_SHOWN.get(name, card.memory),
        memory_by=by,
        context=context,
        flops_16_sums=sums,
        flops_8=eight,
        flops_4=four,
    )


DEVICES = {name: _described(name, card) for name, card in _FIGURES.items()}
_ALIASES = {"h100-80gb": "h100", "rtx-a6000": "a6000"}
_SIZES = {"a100": ("a100-40gb", "a100-80gb"), "v100": ("v100-16gb", "v100-32gb")}  # of cards sold with two memory sizes
_SMALLEST = 10**9  # least number of bytes that a number without a unit can mean
# Words that drivers write around a name: NVIDIA A100-SXM4-80GB, Tesla T4, NVIDIA H100 80GB HBM3.
_AROUND = re.compile(r"nvidia|tesla|geforce|sxm\d?|hbm\d?|[^a-z0-9]")


def device_of(given: str | int | Mapping[str, Any] | Device, *, any_memory: bool = False) -> Device:
    """Return the device that the user names or describes.

    Args:
        given: one of these:
            - a name in `DEVICES`;
            - bytes, as a number or text such as ``"24GB"`` and ``"24GiB"``;
            - ``"auto"``: this machine's first CUDA device, or else its RAM;
            - a mapping with ``memory`` and, if known, ``name``, ``flops`` (per second),
              ``bandwidth`` (bytes per second), ``watts``, ``flops_8`` and other fields of `Device`.
        any_memory: for a name of cards with two memory sizes, return the larger instead of an
            error.

    Raises:
        BadInput: for anything else, listing the known names, and for an ambiguous name.

    >>> device_of("RTX 4090").name, device_of("4090").name, device_of("24GiB").memory
    ('rtx4090', 'rtx4090', 25769803776)
    """
    if isinstance(given, Device):
        return given
    if isinstance(given, Mapping):
        return _own(given)
    if isinstance(given, int) and not isinstance(given, bool):
        given = f"{given}b"
    if not isinstance(given, str):
        raise BadInput(f"the device is {shown(given)}, expected a name, or bytes such as 24GB", code="bad-value")
    if given.lower() == "auto":
        return this_machine()
    if found := _named(given, any_memory=any_memory):
        return found
    size = parse_size(given)
    if size is None:
        known = nearest(given, DEVICES) or f"; known: {', '.join(DEVICES)}"
        raise BadInput(
            f"unknown device {quoted(given)}{known}; `tallystick devices` lists them; or give its memory, such as 24GB",
            code="unknown-name",
        )
    if size < 1:
        raise BadInput(f"a device with {quoted(given)} of memory holds nothing", code="bad-value")
    if size < _SMALLEST and given.strip()[-1].isdecimal():
        number = given.strip()
        named = [name for name in DEVICES if re.sub("[^0-9]", "", name.partition("-")[0]) == number]
        also = f", or {' or '.join(named)}" if named else ""
        raise BadInput(
            f"the device {quoted(given)} is a number without a unit: is {number}GB meant{also}?", code="bad-value"
        )
    return Device(given.removesuffix("b") if given[:-1].isdecimal() else given, size, source="as given")


def _named(given: str, *, any_memory: bool) -> Device | None:
    """Look up a device by a name in any common spelling, or by its number alone (4090)."""
    word = _AROUND.sub("", given.lower())
    for name in (*DEVICES, *_ALIASES):
        written = name.replace("-", "")
        if word in (written, written.removeprefix("rtx"), written.removesuffix("b"), written.removesuffix("gb")):
            return DEVICES[_ALIASES.get(name, name)]
    if sizes := _SIZES.get(word):
        if not any_memory:
            raise BadInput(f"{given} exists with several memory sizes: choose {' or '.join(sizes)}", code="ambiguous")
        return DEVICES[sizes[-1]]
    return None


_RATE_KEYS = ("flops", "bandwidth", "watts", "flops_16_sums", "flops_8", "flops_4")
_OWN = ("name", "memory", *_RATE_KEYS)


def _own(figures: Mapping[str, Any]) -> Device:
    """Return a device with the user's own figures."""
    for key in figures:
        if key not in _OWN:
            raise BadInput(
                f"a device has no {shown(key)}{nearest(str(key), _OWN)}; it has {', '.join(_OWN)}", code="unknown-key"
            )
    memory = figures.get("memory")
    size = parse_size(str(memory)) if isinstance(memory, int | str) and not isinstance(memory, bool) else None
    if not size:
        raise BadInput(
            f"a device's memory is {shown(memory)}, expected bytes, or a size such as 24GB", code="bad-value"
        )
    rates: dict[str, Any] = {}
    for key in _RATE_KEYS:
        value = figures.get(key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
        ):
            raise BadInput(f"a device's {key} is {shown(value)}, expected a positive number", code="bad-value")
        rates[key] = value
    return Device(str(figures.get("name", memory)), size, **rates, source="as given")


def this_machine() -> Device:
    """Return the first CUDA device that its driver reports, or else this machine's RAM."""
    found = _first_cuda_device()
    if found is not None:
        name, memory = found
        try:
            return device_of(name)._replace(memory=memory, memory_by="its driver")
        except BadInput:  # a card that is not in the table
            return Device(name, memory, source="its driver", memory_by="its driver", context=CONTEXT)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # Windows has no such call, another system may not know these names
        raise BadInput(
            "no CUDA device found, and the RAM size is unknown: give bytes, such as 24GB", code="no-answer"
        ) from None
    return Device("RAM", memory, source="the operating system")


def _first_cuda_device() -> tuple[str, int] | None:
    """Ask the driver for the first device's name and bytes: importing torch takes seconds."""
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
