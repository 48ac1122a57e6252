"""What a model takes in memory: every part of it in bytes, with the formula that gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tallystick.answers.formats import PACKED, bytes_of, format_named
from tallystick.answers.kv_cache import kept
from tallystick.answers.lines import PARTS, Line
from tallystick.answers.optimizers import OPTIMIZERS
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import BITS, Ledger, size_in_bytes

MODES = ("inference", "training")
SEQUENCE = 4096  # where neither the user nor learned positions say how long a sequence is


@dataclass(frozen=True)
class Memory:
    """What a model takes, and of what it is made."""

    source: str
    mode: str  # inference | training
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def total(self) -> int:
        """Bytes of all lines."""
        return sum(line.bytes for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick memory``: keys are a contract, added to and never renamed."""
        sums = {part: sum(line.bytes for line in self.lines if line.part == part) for part in PARTS}
        return {
            "source": self.source,
            "mode": self.mode,
            **{f"{part}_bytes": total for part, total in sums.items()},
            "total_bytes": self.total,
            "lines": [asdict(line) for line in self.lines],
            "notes": list(self.notes),
        }


def memory(
    ledger: Ledger,
    *,
    mode: str = "inference",
    dtype: str | None = None,
    batch: int = 1,
    sequence: int | None = None,
    kv_dtype: str | None = None,
    optimizer: str = "adamw",
    precision: str = "pure",
) -> Memory:
    """What a model takes in memory.

    Args:
        ledger: of a config, a checkpoint or a module.
        mode: ``"inference"`` or ``"training"``.
        dtype: of the weights; by default each tensor's own.
        batch: sequences at once.
        sequence: tokens of each; by default as many as there are learned positions, or 4,096.
        kv_dtype: of cached keys and values; by default that of the weights, float16 where these are packed.
        optimizer: one of `OPTIMIZERS`.
        precision: ``"pure"``, all in the weights' dtype; ``"mixed"``, weights in float32 and products in bfloat16, as
            torch.autocast has it; ``"master"``, weights and gradients in 16 bits, and in the optimizer a float32 copy.

    Raises:
        BadInput: for a word or a number that makes no sense, and for what the ledger does not tell.
    """
    _one_of("mode", mode, MODES)
    _one_of("optimizer", optimizer, OPTIMIZERS)
    for what, number in (("batch", batch), ("sequence", 1 if sequence is None else sequence)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise BadInput(f"{what} is {shown(number)}, expected a positive integer")
    form = None if dtype is None else format_named(dtype)
    positions = _positions(ledger)
    if sequence is not None and positions is not None and sequence > positions:
        raise BadInput(
            f"a sequence of {sequence:,} is longer than the {positions:,} positions that {ledger.source} learned"
        )
    sequence = sequence or positions or SEQUENCE
    lines = [_weights(ledger, form)]
    if mode == "inference":
        lines += _cache(ledger, format_named(kv_dtype) if kv_dtype else _computed(ledger, form), batch, sequence)
    return Memory(ledger.source, mode, tuple(lines), ())


def _one_of(what: str, word: str, known: Sequence[str] | dict[str, Any]) -> None:
    if word not in known:
        raise BadInput(f"{what} is {quoted(word)}, expected one of {', '.join(known)}{nearest(str(word), known)}")


def _positions(ledger: Ledger) -> int | None:
    """The rows of the learned positions, None where there are none."""
    rows = [
        int(entry.shape[0])
        for entry in ledger.parameters
        if entry.role == "position_embedding" and len(entry.shape) == 2
    ]
    return min(rows, default=None)


def _computed(ledger: Ledger, form: str | None) -> str:
    """The dtype in which a model computes: that of most of its weights, 16 bits where these are packed."""
    if form is not None:
        return "float16" if form in PACKED else form
    widths = ledger.by("dtype")
    return max(widths, key=lambda name: widths[name])


def _weights(ledger: Ledger, form: str | None) -> Line:
    total = sum(bytes_of(entry, form) for entry in ledger.parameters)
    if form in PACKED:
        return Line("weights", f"weights in {form}", total, f"{ledger.total:,} parameters, packed", PACKED[form].source)
    dtypes = {form} if form else set(ledger.by("dtype"))
    width = (
        f" × {BITS[name] // 8} B" if len(dtypes) == 1 and (name := next(iter(dtypes))) and BITS[name] % 8 == 0 else ""
    )
    return Line("weights", f"weights in {', '.join(sorted(dtypes))}", total, f"{ledger.total:,}{width}")


def _cache(ledger: Ledger, form: str, batch: int, sequence: int) -> list[Line]:
    return [
        Line(
            "kv_cache",
            f"cached keys and values in {form}" + (f", window {one.window:,}" if one.window else ""),
            size_in_bytes(batch * one.total, form),
            f"{batch:,} × {one.layers:,} layers × {one.positions:,} tokens × {one.elements:,} × {BITS[form] // 8} B",
            "Shazeer 2019, Fast Transformer Decoding, section 2.3",
        )
        for one in kept(ledger.attending, sequence)
    ]
