"""Optimizers: state kept for each parameter between steps, and buffers needed during a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tallystick.core.dtypes import BITS
from tallystick.core.entries import Entry
from tallystick.errors import BadInput, nearest, quoted

STEP = 4  # bytes: torch keeps the step count of each tensor as a float32
MUON_ROLES = ("attention", "mlp", "experts", "router", "ssm", "other")  # hidden matrices; AdamW updates the rest

# Dettmers et al. 2021, "8-bit Optimizers via Block-wise Quantization", as in torchao and
# bitsandbytes: for tensors of at least 4,096 elements, one scale per block, and a table with the
# values of the 256 codes.
SMALLEST_8BIT, BLOCK_8BIT, TABLE_8BIT = 4096, 256, 256 * 4

Rule = Callable[[tuple[int, ...], int, str], int]  # bytes of a tensor, from its shape, bytes per element, and role

# -- kept between steps ---------------------------------------------------------------------------


def _adamw(shape: tuple[int, ...], width: int, role: str) -> int:
    return 2 * math.prod(shape) * width + STEP


def _adamw_8bit(shape: tuple[int, ...], width: int, role: str) -> int:
    elements = math.prod(shape)
    if elements < SMALLEST_8BIT or elements % BLOCK_8BIT:
        return _adamw(shape, width, role)
    return 2 * (elements + elements // BLOCK_8BIT * 4 + TABLE_8BIT) + STEP


def _nothing(shape: tuple[int, ...], width: int, role: str) -> int:
    return 0


def _once(shape: tuple[int, ...], width: int, role: str) -> int:
    return math.prod(shape) * width


def _adafactor(shape: tuple[int, ...], width: int, role: str) -> int:
    if len(shape) < 2:
        return math.prod(shape) * width + STEP
    *outer, rows, columns = shape
    return math.prod(outer) * (rows + columns) * width + STEP


def _is_hidden(shape: tuple[int, ...], role: str) -> bool:
    return len(shape) == 2 and role in MUON_ROLES


def _muon(shape: tuple[int, ...], width: int, role: str) -> int:
    return (_once if _is_hidden(shape, role) else _adamw)(shape, width, role)


# -- needed during a step -------------------------------------------------------------------------


def _in_float32(times: int) -> Rule:
    """Return a rule for `times` float32 copies of a tensor."""
    return lambda shape, width, role: times * math.prod(shape) * 4


def _rest_of_muon(shape: tuple[int, ...], width: int, role: str) -> int:
    return 0 if _is_hidden(shape, role) else _once(shape, width, role)


def _one_of_muon(shape: tuple[int, ...], width: int, role: str) -> int:
    return _in_float32(3)(shape, width, role) if _is_hidden(shape, role) else 0


class Optimizer(NamedTuple):
    """One optimizer. Step buffers are those that torch allocates on a CUDA device by default."""

    kept: Rule
    formula: str
    source: str
    together: Rule = _nothing  # buffers of all tensors at the same time
    alone: Rule = _nothing  # buffers of one tensor at a time; the largest counts


_TWO = "2 × {elements:,} × {width} B + {tensors:,} tensors × 4 B"
OPTIMIZERS = {
    "adamw": Optimizer(_adamw, _TWO, "torch.optim.AdamW: two moments of an element, a step count", together=_once),
    "adamw-fused": Optimizer(_adamw, _TWO, "torch.optim.AdamW(fused=True): as adamw, in one kernel without buffers"),
    "adam8bit": Optimizer(
        _adamw_8bit,
        "2 B of an element and 8 B of 256, of {elements:,} (tensors below 4,096 as adamw)",
        "torchao.optim.AdamW8bit; Dettmers et al. 2021, 8-bit Optimizers, section 2",
        alone=_in_float32(2),
    ),
    "sgd": Optimizer(_nothing, "nothing", "torch.optim.SGD without momentum"),
    "sgd-momentum": Optimizer(_once, "{elements:,} × {width} B", "torch.optim.SGD with momentum"),
    "adafactor": Optimizer(
        _adafactor,
        "(rows + columns) × {width} B of each matrix, {tensors:,} tensors × 4 B",
        "torch.optim.Adafactor; Shazeer and Stern 2018, Adafactor, section 3",
        alone=_in_float32(2),
    ),
    "muon": Optimizer(
        _muon,
        "{width} B of an element of hidden matrices, {twice} B of the rest",
        "torch.optim.Muon for hidden matrices, torch.optim.AdamW for the rest",
        together=_rest_of_muon,
        alone=_one_of_muon,
    ),
    "none": Optimizer(_nothing, "nothing", "no optimizer"),
}


def optimizer_named(name: str) -> Optimizer:
    """Return the optimizer with this name, or raise `BadInput` with the nearest names."""
    if name not in OPTIMIZERS:
        raise BadInput(
            f"unknown optimizer {quoted(name)}; expected one of"
            f" {', '.join(OPTIMIZERS)}{nearest(str(name), OPTIMIZERS)}",
            code="unknown-name",
        )
    return OPTIMIZERS[name]


def state_bytes(entry: Entry, optimizer: str, dtype: str) -> int:
    """Return the bytes of optimizer state for an entry, times its copies; 0 without own storage.

    Args:
        entry: a trained tensor.
        optimizer: one of `OPTIMIZERS`.
        dtype: of the moments.
    """
    return _apply(optimizer_named(optimizer).kept, entry, dtype) * entry.copies


def step_bytes(moments: Iterable[tuple[Entry, str]], optimizer: str) -> int:
    """Return the bytes of a step's buffers, for entries with the dtypes of their moments."""
    how, moments = optimizer_named(optimizer), list(moments)
    together = sum(_apply(how.together, entry, dtype) * entry.copies for entry, dtype in moments)
    return max(together, max((_apply(how.alone, entry, dtype) for entry, dtype in moments), default=0))


def _apply(rule: Rule, entry: Entry, dtype: str) -> int:
    if not entry.trainable or (entry.size and not entry.unique):  # an empty shard still has its step count
        return 0
    return rule(tuple(int(dim) for dim in entry.shape), BITS[dtype] // 8, entry.role)
