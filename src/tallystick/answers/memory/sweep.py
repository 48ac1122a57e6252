"""What a model takes in memory at several lengths of its sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.answers.memory.lines import PARTS
from tallystick.answers.memory.memory import PHASES, Memory, memory
from tallystick.core.ledger import Ledger


@dataclass(frozen=True)
class Sweep:
    """One answer for each length, all else equal."""

    source: str
    mode: str
    answers: tuple[Memory, ...]

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Bytes of each part at the fullest moment of each length, those that are nowhere left out: they sum to the totals."""
        found = {part: tuple(_at_peak(answer, part) for answer in self.answers) for part in PARTS}
        return {part: sizes for part, sizes in found.items() if any(sizes)}

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick memory`` of several lengths: keys are a contract, added to and never renamed."""
        return {
            "source": self.source,
            "mode": self.mode,
            "sequences": [answer.sequence for answer in self.answers],
            "total_bytes": [answer.total for answer in self.answers],
            "parts_at_peak": {part: list(sizes) for part, sizes in self.parts.items()},
            "answers": [answer.to_dict() for answer in self.answers],
        }


def sweep(ledger: Ledger, sequences: Sequence[int], **options: Any) -> Sweep:
    """`memory` for each length of a sequence, in tokens; the other options are those of `memory`."""
    answers = tuple(memory(ledger, sequence=sequence, **options) for sequence in sequences)
    return Sweep(ledger.source, answers[0].mode, answers)


def _at_peak(answer: Memory, part: str) -> int:
    if part not in PHASES[answer.mode][answer.peak.phase]:
        return 0
    return sum(line.bytes for line in answer.lines if line.part == part)
