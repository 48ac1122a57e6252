"""Many ranks train what one trains; whatever kills a run, nothing is lost but the steps since it was saved."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tallystick.live.ranks import ranks
from tallystick.models import load_pretrained
from training import small
from training_tasks import trained


def together(count, folder, resume="never", **settings):
    config = small(folder, save_every=3, eval_every=6, **settings)
    with ranks(count, "training_tasks:trained", [asdict(config), resume]) as started:
        return started.results()[0]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return trained(asdict(small(folder, save_every=3, eval_every=6))), folder


def assert_same(one, other):
    first, second = (dict(load_pretrained(found["model"]).named_parameters()) for found in (one, other))
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-4, rtol=0)


@pytest.mark.parametrize(("count", "sharding"), [(2, "ddp"), (2, "fsdp"), (4, "fsdp")])
def test_the_losses_are_those_of_one_rank(tmp_path, alone, count, sharding):
    found = together(count, tmp_path, sharding=sharding)
    assert found["losses"] == pytest.approx(alone[0]["losses"], abs=1e-4)
    assert found["validation"] == pytest.approx(alone[0]["validation"], abs=1e-4)
    assert_same(found, alone[0])


def test_gradients_are_averaged_once_a_step_where_a_batch_is_read_in_parts(tmp_path, alone):
    found = together(2, tmp_path, sharding="fsdp", accumulate=2)
    assert found["losses"] == pytest.approx(alone[0]["losses"], abs=1e-4)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_another_number_of_ranks_goes_on(tmp_path, alone, before, after):
    if before == 1:
        shutil.copytree(alone[1], tmp_path, dirs_exist_ok=True)
    else:
        together(before, tmp_path, sharding="fsdp")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000006")
    shutil.rmtree(tmp_path / "run" / "model")
    found = together(after, tmp_path, resume="auto", sharding="fsdp", data=str(data_of(alone, before, tmp_path)))
    assert found["losses"] == pytest.approx(alone[0]["losses"][3:], abs=1e-4)
    assert_same(found, alone[0])


def data_of(alone, before, folder):
    """The text that the run began with: its name is part of the config."""
    return (alone[1] if before == 1 else folder) / "texts"


def test_ranks_that_do_not_divide_the_batch_are_refused(tmp_path, monkeypatch):
    from tallystick.errors import BadInput
    from tallystick.training.run import prepared

    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(BadInput, match="3 ranks cannot share 4 sequences equally"):
        prepared(small(tmp_path))


def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    """Six times here; `python tests/training_tasks.py FOLDER 100 3` does it as often as one likes."""
    task = Path(__file__).with_name("training_tasks.py")
    done = subprocess.run(
        [sys.executable, task, tmp_path, "6", "1.5"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ended, wrong = map(int, done.stdout.split())
    assert ended >= 1
    assert wrong == 0
