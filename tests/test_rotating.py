"""What a commit leaves out: another part in each, and nothing where the commit changes what is
tested.
"""

from __future__ import annotations

import pytest

import measurements
import rotating

CASES = [*range(40)]
HALVES = {
    "half": lambda: rotating.half_by_commit(CASES, "src/room/"),
    "some": lambda: rotating.some_by_commit(CASES, 20),
}


@pytest.fixture
def commit(monkeypatch):
    """Sets the commit: its digest, and the files that it changes."""
    monkeypatch.setattr(rotating, "ALL", False)
    monkeypatch.setattr(rotating, "EXAMPLES", None)

    def of(digest, *files):
        monkeypatch.setattr(measurements, "seed", lambda: digest)
        monkeypatch.setattr(rotating, "changed", lambda: frozenset(files))

    return of


@pytest.mark.parametrize("taken", HALVES.values(), ids=HALVES)
def test_a_commit_takes_a_part_and_some_commits_take_all(commit, taken):
    commit("a", "README.md")
    first = taken()
    assert 10 < len(first) < 30
    assert taken() == first == sorted(first)
    found = {*first}
    for digest in "bcdefgh":
        commit(digest)
        assert taken() != first
        found |= {*taken()}
    assert found == {*CASES}


@pytest.mark.parametrize("taken", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("file", ["constraints.txt", "tests/test_rotating.py"])
def test_a_commit_that_changes_the_versions_or_the_test_leaves_nothing_out(commit, taken, file):
    commit("a", file)
    assert taken() == CASES


def test_a_commit_that_changes_what_is_tested_leaves_nothing_out(commit):
    commit("a", "src/room/inner/file.py")
    assert HALVES["half"]() == CASES
    commit("a", "src/roommate.py")
    assert HALVES["half"]() != CASES


def test_of_hundreds_only_a_search_takes_all(commit, monkeypatch):
    hundreds = [*range(rotating.FEW + 1)]
    commit("a", "tests/test_rotating.py")
    assert len(rotating.some_by_commit(hundreds, 9)) == 9
    monkeypatch.setattr(rotating, "ALL", True)
    assert rotating.some_by_commit(hundreds, 9) == hundreds


def test_a_case_is_taken_by_one_commit_of_so_many_or_where_its_room_changes(commit):
    taken = []
    for number in range(300):
        commit(str(number))
        taken.append(rotating.taken_by_commit("a flow", 3, ["src/room/"]))
    assert 60 < sum(taken) < 140
    commit(str(taken.index(False)), "src/room/file.py")
    assert rotating.taken_by_commit("a flow", 3, ["src/room/"])
