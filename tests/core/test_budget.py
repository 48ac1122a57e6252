"""One budget for each source: its steps, bytes and seconds, whichever of its files takes them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from checkpoints import write, write_sharded
from fuzz_cost import calls_of
from host import serving
from tallystick import BadInput, check, count
from tallystick.core import budget
from tallystick.core.budget import current, one_source
from tallystick.derivations.expressions.parser import suffix
from tallystick.derivations.expressions.tokens import tokens
from tallystick.formats.safetensors import read_header
from tallystick.formats.safetensors_json import LONGEST_NAME, LONGEST_TEXT


def refused(source: object) -> str:
    with pytest.raises(BadInput) as error:
        count(source)
    return str(error.value)


def test_steps_bytes_and_seconds_are_refused_when_they_are_spent(monkeypatch):
    with one_source() as one:
        one.step(budget.STEPS)
        with pytest.raises(BadInput, match="reading it takes more than 10,000,000 steps"):
            one.step()
    with one_source() as one:
        one.keep(budget.ROOM, "its names")
        with pytest.raises(BadInput, match="its names would take more than 170,000,000 bytes of memory"):
            one.keep(1, "its names")
    with one_source() as one:
        monkeypatch.setattr(budget, "thread_time", lambda: float("inf"))
        with pytest.raises(BadInput, match="reading it takes more than 10 seconds of CPU time"):
            one.step(budget.STEPS // 2)


def test_what_is_given_back_and_what_is_read_leave_room():
    with one_source() as one:
        one.keep(budget.ROOM, "its names")
        one.keep(-5, "its names")
        one.keep(5, "its names")
        one.read(7)
        one.keep(7, "its names")
        with pytest.raises(BadInput, match="more than 170,000,007 bytes"):
            one.keep(1, "its names")


def test_seconds_of_what_has_limits_of_its_own_do_not_count(monkeypatch):
    now = 0.0
    monkeypatch.setattr(budget, "thread_time", lambda: now)
    with one_source() as one:
        with one.paused():
            now = 100.0
        one.step(budget.STEPS // 2)


def test_the_work_of_another_thread_is_none_of_a_readers():
    with one_source() as one:
        worker = threading.Thread(target=lambda: sum(range(3_000_000)))
        worker.start()
        worker.join()
        now = budget.thread_time()
        assert one._began[threading.get_ident()] <= now
        one.seconds = now - one._began[threading.get_ident()] + 0.01  # less than the other thread took
        one.step(budget.STEPS // 2)


def test_a_source_within_a_source_takes_from_its_budget():
    with one_source() as outer:
        with one_source() as inner:
            assert inner is outer is current()
        assert current() is outer
    assert current() is not outer


SHARDS = [{f"{shard}.{number}.w{number}": (number + 1,) for number in range(200)} for shard in range(4)]


def test_all_shards_take_from_one_budget(tmp_path: Path, monkeypatch):
    index = write_sharded(tmp_path, *SHARDS)
    total = 4 * sum(range(1, 201))
    assert count(index).total == total
    monkeypatch.setattr(budget, "STEPS", 15_000)
    assert count(tmp_path / "model-00001-of-00004.safetensors").total == total // 4
    assert "reading it takes more than 15,000 steps" in refused(index)


def test_shards_that_are_read_at_once_take_from_one_budget(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    write_sharded(tmp_path, *SHARDS)
    with serving() as host:
        for path in tmp_path.iterdir():
            host.files[f"/m/{path.name}"] = path.read_bytes()
        address = f"{host.address}/m/model.safetensors.index.json"
        assert count(address).total == 4 * sum(range(1, 201))
        monkeypatch.setattr(budget, "STEPS", 15_000)
        assert "reading it takes more than 15,000 steps" in refused(address)


def test_names_and_texts_of_a_header_have_a_longest(tmp_path: Path):
    path = write(tmp_path / "a.safetensors", {"n" * LONGEST_NAME: (1,)})
    assert count(path).total == 1
    write(path, {"n" * (LONGEST_NAME + 1): (1,)})
    assert f"{path}: the header names a tensor by 65,537 characters, more than 65,536" == refused(path)
    write(path, {"w": (1,)}, metadata={"a": "x" * (LONGEST_TEXT // 2)})
    assert read_header(path).metadata == {"a": "x" * (LONGEST_TEXT // 2)}
    write(path, {"w": (1,)}, metadata={"a": "x" * (LONGEST_TEXT + (1 << 20))})
    assert "has more than 8,388,608 characters" in refused(path)


@pytest.mark.parametrize("line", ["d ", "(1)", "( 1 + ", "1 + ", "(d) (a b) "])
def test_the_end_of_a_line_is_read_in_time_that_grows_with_it(line: str):
    """Twice the tokens take twice the calls, however many of them an expression could begin at."""
    times = 40 if line.startswith("( 1") else 200  # parentheses may be nested a hundred deep
    once, twice = (tokens(line * more + ";", {"d"}) for more in (times, 2 * times))
    assert calls_of(lambda: suffix(twice, {"d"})).time < 2.5 * calls_of(lambda: suffix(once, {"d"})).time


def test_a_derivation_has_a_budget_of_its_own(monkeypatch):
    monkeypatch.setattr(budget, "STEPS", 2_000)
    assert check("a = 1 + 1 = 2\n").correct
    with pytest.raises(BadInput, match=r"line \d+: reading it takes more than 2,000 steps"):
        check("a = 1 + 1 = 2\n" * 500)
