"""Memory needed at several sequence lengths, or in several dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.answers.memory.answer import PHASES, Memory
from tallystick.answers.memory.lines import PARTS
from tallystick.answers.memory.memory import memory
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger


@dataclass(frozen=True, repr=False)
class Sweep(Displayed):
    """One memory answer per sequence length or dtype, with otherwise equal options."""

    source: str
    mode: str
    answers: tuple[Memory, ...]
    along: str = "sequence"  # or dtype: what differs

    @property
    def sequences(self) -> tuple[int, ...]:
        """Sequence lengths, in tokens."""
        return tuple(answer.sequence for answer in self.answers)

    @property
    def dtypes(self) -> tuple[str | None, ...]:
        """Dtypes of the weights, as requested; None keeps each tensor's own."""
        return tuple(answer.dtype for answer in self.answers)

    @property
    def total_bytes(self) -> tuple[int, ...]:
        """Bytes at each answer's peak."""
        return tuple(answer.total_bytes for answer in self.answers)

    @property
    def parts_at_peak(self) -> dict[str, tuple[int, ...]]:
        """Bytes of each part at each answer's peak, without parts that are always 0.

        The parts of one answer sum to its total.
        """
        found = {part: tuple(_at_peak(answer, part) for answer in self.answers) for part in PARTS}
        return {part: sizes for part, sizes in found.items() if any(sizes)}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON for several lengths or dtypes. Keys are added, never renamed."""
        return {
            "source": self.source,
            "mode": self.mode,
            "sequences": list(self.sequences),
            "dtypes": list(self.dtypes),
            "total_bytes": list(self.total_bytes),
            "parts_at_peak": {part: list(sizes) for part, sizes in self.parts_at_peak.items()},
            "answers": [answer.to_dict() for answer in self.answers],
        }


def sweep(ledger: Ledger, sequences: Sequence[int], **options: Any) -> Sweep:
    """Compute `memory` for each sequence length, in tokens, with the same other options."""
    answers = tuple(memory(ledger, sequence=sequence, **options) for sequence in sequences)
    return Sweep(ledger.source, answers[0].mode, answers)


def sweep_dtypes(ledger: Ledger, dtypes: Sequence[str], **options: Any) -> Sweep:
    """Compute `memory` for each dtype of the weights, with the same other options."""
    answers = tuple(memory(ledger, dtype=dtype, **options) for dtype in dtypes)
    return Sweep(ledger.source, answers[0].mode, answers, along="dtype")


def _at_peak(answer: Memory, part: str) -> int:
    if part not in PHASES[answer.mode][answer.peak]:
        return 0
    return sum(line.bytes for line in answer.lines if line.part == part)
