"""A clock that is set back, and signals at any moment of a save: the same checkpoints, the same
bits, no odd rate.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repository import TESTS
from rotating import some_by_commit
from tallystick.training.checkpoints import checkpoint
from tallystick.training.plan import peak_flops
from tallystick.training.run import prepared
from tallystick.training.train import train
from training import small

pytestmark = pytest.mark.usefixtures("preloaded_module")


@pytest.mark.parametrize("clock", ["stands still", "goes back"])
def test_no_rate_is_infinite_or_negative(tmp_path, monkeypatch, clock):
    readings = itertools.repeat(5.0) if clock == "stands still" else itertools.count(5.0, -1.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(readings))
    run = prepared(small(tmp_path, steps=3))
    speeds = [event.values["speed"] for event in run.events() if event.kind == "step"]
    run.close()
    assert len(speeds) == 3
    assert all(0 < speed < float("inf") for speed in speeds)
    assert 0 < peak_flops(run.ranks.device, run.decoder.embedding.weight.dtype, size=4) < float("inf")


def test_a_clock_set_back_between_two_runs_changes_nothing(tmp_path, monkeypatch):
    """The newest checkpoint is the one of the latest step, also where its files and its log say
    that it is the oldest.
    """
    (tmp_path / "other").mkdir()
    whole = train(small(tmp_path / "other", steps=6, save_every=2, keep=9))
    config = small(tmp_path, steps=6, save_every=2, keep=9)
    run = prepared(config)
    for event in run.events():
        if event.kind == "saved" and event.step == 4:
            break
    run.close()
    for number, path in enumerate(checkpoint.checkpoints(tmp_path / "run")):  # the newest first
        os.utime(path, (number, number))
    monkeypatch.setattr(time, "time", lambda: -1e9)
    outcome = train(config, resume="auto")
    assert [path.name for path in checkpoint.checkpoints(tmp_path / "run")] == [
        "step-00000006", "step-00000004", "step-00000002",
    ]  # fmt: skip
    first, second = (Path(one.model) / "model.safetensors" for one in (whole, outcome))
    assert first.read_bytes() == second.read_bytes()
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log if line["kind"] == "step"] == [5, 6]  # `prepared` alone writes no log


PLACES = ["_save_file", "write_progress", "seal", "flush_to_disk", "_drop_old"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_in_a_save_lets_it_end_and_stops_after_the_next_step(tmp_path, monkeypatch, number, place):
    config = small(tmp_path, steps=6, save_every=2)
    run, done = prepared(config), getattr(checkpoint, place)

    def interrupted(*arguments, **keywords):
        os.kill(os.getpid(), number)
        return done(*arguments, **keywords)

    monkeypatch.setattr(checkpoint, place, interrupted)
    kinds = [(event.kind, event.step) for event in run.events() if event.kind != "step"]
    run.close()
    assert kinds == [("saved", 2), ("saved", 3), ("stopped", 3)]
    assert [path.name for path in checkpoint.checkpoints(tmp_path / "run")] == ["step-00000003", "step-00000002"]
    assert all(map(checkpoint.is_whole, checkpoint.checkpoints(tmp_path / "run")))
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))


def test_killed_in_a_save_it_ends_with_the_same_bits(tmp_path):
    """`kill -9`, before and after each part of a save; the step at which the run goes on, and
    whether its bits are the same.
    """
    task = TESTS / "support" / "training_tasks.py"
    places = [*some_by_commit([*PLACES[:-1], "write_slices"], 2), "_drop_old"]
    done = subprocess.run(
        [sys.executable, task, tmp_path, *places],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = {(place, when): [step, same] for place, when, step, same in json.loads(done.stdout)}
    assert len(found) == 2 * len(places)
    assert found.pop(("_drop_old", "before")) == found.pop(("_drop_old", "after")) == [4, True]
    assert set(map(tuple, found.values())) == {(2, True)}
