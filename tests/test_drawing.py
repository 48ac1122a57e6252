"""What is drawn for a run: which types its slow tests take."""

from __future__ import annotations

import pytest

import drawing

TYPES = [f"type_{number}" for number in range(200)]


@pytest.fixture(autouse=True)
def no_search(monkeypatch):
    monkeypatch.setattr(drawing, "EXAMPLES", None)


def test_so_many_types_are_taken_in_order_and_few_types_all():
    taken = drawing.some(TYPES, 60)
    assert len({*taken}) == 60
    assert taken == sorted(taken)
    assert {*taken} < {*TYPES}
    assert drawing.some(TYPES[::-1], 60) == taken
    assert drawing.some(TYPES[:7], 60) == TYPES[:7]


def test_a_new_type_takes_the_place_of_at_most_one():
    """Wherever it stands, so that tests/measured keeps what it knows of the others."""
    before, changes = {*drawing.some(TYPES, 60)}, 0
    for name in (f"{prefix}_{number}" for prefix in ("a", "type", "z") for number in range(1000, 1020)):
        after = {*drawing.some(sorted([*TYPES, name]), 60)}
        assert after == before or (name in after and len(after - before) == len(before - after) == 1)
        changes += after != before
    assert 5 < changes < 40  # sixty of two hundred are taken


def test_another_seed_takes_others(monkeypatch):
    before = drawing.some(TYPES, 60)
    monkeypatch.setattr(drawing, "SEED", drawing.SEED + 1)
    assert 5 < len({*before} & {*drawing.some(TYPES, 60)}) < 40


def test_a_search_takes_all(monkeypatch):
    monkeypatch.setattr(drawing, "EXAMPLES", "1000")
    assert drawing.some(TYPES, 60) == TYPES
