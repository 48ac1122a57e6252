"""What an optimizer keeps of each parameter between two steps, and what it needs during one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Entry
from tallystick.errors import BadInput, nearest, quoted

STEP = 4  # bytes: torch counts the steps of each tensor in a float32 of its own
MUON_ROLES = ("attention", "mlp", "experts", "router", "ssm", "other")  # hidden matrices; the rest goes to AdamW

# Dettmers et al. 2021, "8-bit Optimizers via Block-wise Quantization", as torchao and bitsandbytes have it: tensors of
# at least 4,096 elements, one scale for each block, and a table of the 256 values that a code can stand for.
SMALLEST_8BIT, BLOCK_8BIT, TABLE_8BIT = 4096, 256, 256 * 4

Rule = Callable[[tuple[int, ...], int, str], int]  # bytes for a tensor of a shape, of elements so wide, with a role

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
    """So many float32 copies of a tensor."""
    return lambda shape, width, role: times * math.prod(shape) * 4


def _rest_of_muon(shape: tuple[int, ...], width: int, role: str) -> int:
    return 0 if _is_hidden(shape, role) else _once(shape, width, role)


def _one_of_muon(shape: tuple[int, ...], width: int, role: str) -> int:
    return _in_float32(3)(shape, width, role) if _is_hidden(shape, role) else 0


class Optimizer(NamedTuple):
    """One way to step. The buffers of a step are those that torch makes on a CUDA device by default."""

    kept: Rule
    formula: str
    source: str
    together: Rule = _nothing  # buffers of all tensors at once
    alone: Rule = _nothing  # buffers of one tensor after the other, at most


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
    """The optimizer of a name, or `BadInput` with the nearest ones."""
    if name not in OPTIMIZERS:
        raise BadInput(
            f"no optimizer is called {quoted(name)}, expected one of {', '.join(OPTIMIZERS)}"
            f"{nearest(str(name), OPTIMIZERS)}",
            code="unknown-name",
        )
    return OPTIMIZERS[name]


def state_bytes(entry: Entry, optimizer: str, dtype: str) -> int:
    """Bytes that an optimizer keeps for an entry, all its copies, its moments in `dtype`; 0 for what another holds."""
    return _apply(optimizer_named(optimizer).kept, entry, dtype) * entry.copies


def step_bytes(moments: Iterable[tuple[Entry, str]], optimizer: str) -> int:
    """Bytes that a step needs beside all that is kept, for entries with the dtypes of their moments."""
    how, moments = optimizer_named(optimizer), list(moments)
    together = sum(_apply(how.together, entry, dtype) * entry.copies for entry, dtype in moments)
    return max(together, max((_apply(how.alone, entry, dtype) for entry, dtype in moments), default=0))


def _apply(rule: Rule, entry: Entry, dtype: str) -> int:
    if not entry.trainable or (entry.size and not entry.unique):  # of no elements, a shard has its step count yet
        return 0
    return rule(tuple(int(dim) for dim in entry.shape), BITS[dtype] // 8, entry.role)
