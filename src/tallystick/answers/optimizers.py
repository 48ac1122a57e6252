"""What an optimizer keeps of each parameter between two steps."""

from __future__ import annotations

import math
from collections.abc import Callable

from tallystick.errors import BadInput, nearest, quoted
from tallystick.ledger import BITS, Entry

STEP = 4  # bytes: torch counts the steps of each tensor in a float32 of its own
MUON_ROLES = ("attention", "mlp", "experts", "router", "ssm", "other")  # hidden matrices; the rest goes to AdamW

# Dettmers et al. 2021, "8-bit Optimizers via Block-wise Quantization", as torchao and bitsandbytes have it: tensors of
# at least 4,096 elements, one scale for each block, and a table of the 256 values that a code can stand for.
SMALLEST_8BIT, BLOCK_8BIT, TABLE_8BIT = 4096, 256, 256 * 4


def _adamw(shape: tuple[int, ...], width: int, role: str) -> int:
    return 2 * math.prod(shape) * width + STEP


def _adamw_8bit(shape: tuple[int, ...], width: int, role: str) -> int:
    elements = math.prod(shape)
    if elements < SMALLEST_8BIT or elements % BLOCK_8BIT:
        return _adamw(shape, width, role)
    return 2 * (elements + elements // BLOCK_8BIT * 4 + TABLE_8BIT) + STEP


def _sgd(shape: tuple[int, ...], width: int, role: str) -> int:
    return 0


def _momentum(shape: tuple[int, ...], width: int, role: str) -> int:
    return math.prod(shape) * width


def _adafactor(shape: tuple[int, ...], width: int, role: str) -> int:
    if len(shape) < 2:
        return math.prod(shape) * width + STEP
    *outer, rows, columns = shape
    return math.prod(outer) * (rows + columns) * width + STEP


def _muon(shape: tuple[int, ...], width: int, role: str) -> int:
    hidden = len(shape) == 2 and role in MUON_ROLES
    return (_momentum if hidden else _adamw)(shape, width, role)


# Each: bytes kept for one tensor of a shape and a role, whose elements are `width` bytes wide.
OPTIMIZERS: dict[str, tuple[Callable[[tuple[int, ...], int, str], int], str]] = {
    "adamw": (_adamw, "two moments of each element, a step count of each tensor (torch.optim.AdamW)"),
    "adam8bit": (_adamw_8bit, "two moments of each element in 8 bits, a scale for each 256 (torchao.optim.AdamW8bit)"),
    "sgd": (_sgd, "nothing (torch.optim.SGD without momentum)"),
    "sgd-momentum": (_momentum, "one moment of each element (torch.optim.SGD with momentum)"),
    "adafactor": (_adafactor, "a row and a column of each matrix (torch.optim.Adafactor)"),
    "muon": (_muon, "one moment of each element of hidden matrices (torch.optim.Muon), AdamW's two of the rest"),
    "none": (_sgd, "nothing"),
}


def state_bytes(entry: Entry, optimizer: str, dtype: str) -> int:
    """Bytes that an optimizer keeps for an entry, all its copies, its moments in `dtype`; 0 for what another holds."""
    if optimizer not in OPTIMIZERS:
        raise BadInput(f"no optimizer is called {quoted(optimizer)}{nearest(optimizer, OPTIMIZERS)}")
    if not entry.unique or not entry.trainable:
        return 0
    shape = tuple(int(dim) for dim in entry.shape)
    return OPTIMIZERS[optimizer][0](shape, BITS[dtype] // 8, entry.role) * entry.copies
