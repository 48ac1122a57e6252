"""A short search for inputs that cost much, one of five by commit (`fuzz_cost.py` searches for as
long as it is told).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz_cost import SUBJECTS, calls_of, costliest
from rotating import one_by_commit
from tallystick import BadInput
from tallystick.sources.transformers_meta import fallback

SEEDS = ["1", "2", "3", "4", "5"]
INPUTS = 10
LARGEST = 3000  # bytes of an input
CALLS, MEMORY = 600_000, 5_000_000  # of one such input: a line of a derivation, which may be 6 bytes, takes 600 calls


def _no_transformers(*_: object, **__: object) -> None:
    raise BadInput("not built")


@pytest.mark.parametrize("seed", one_by_commit(SEEDS))
@pytest.mark.parametrize("name", SUBJECTS)
def test_no_small_input_costs_much(tmp_path: Path, name: str, seed: str, monkeypatch):
    monkeypatch.setattr(fallback, "ledger_by_transformers", _no_transformers)  # it has limits of its own
    monkeypatch.setattr(fallback, "has_class", lambda *_: False)
    subject = SUBJECTS[name]
    content, cost = costliest(
        subject,
        tmp_path,
        calls_of,
        lambda done: done == INPUTS,
        seed=int(seed),
        time=CALLS,
        memory=MEMORY,
        most=LARGEST,
    )
    assert cost.time < CALLS, content[:300]
    assert cost.memory < MEMORY, content[:300]
