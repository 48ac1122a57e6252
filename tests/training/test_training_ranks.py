"""Many ranks train what one trains; whatever kills a run, nothing is lost but the steps since it
was saved.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from repository import TESTS
from rotating import taken_by_commit
from tallystick.live.ranks import ranks
from tallystick.models import load_pretrained
from tallystick.training.lock import locked
from tallystick.training.ranks import Ranks
from training import small
from training_tasks import trained

pytestmark = pytest.mark.usefixtures("preloaded_module")

SAVED = {"save_every": 3, "eval_every": 6}


def together(count, *runs):
    """What the first of so many ranks says of each run, a config and how it resumes, one after
    another.
    """
    with ranks(
        count, "training_tasks:trained_in_turn", [[[asdict(config), resume] for config, resume in runs]]
    ) as all_of:
        return all_of.results()[0]


def begun_elsewhere(whole, folder):
    """The config of a run that another number of ranks began in `whole`, as it was after its third
    step, in `folder`.
    """
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    shutil.rmtree(folder / "run" / "checkpoints" / "step-00000006")
    shutil.rmtree(folder / "run" / "model")
    return small(folder, **SAVED, sharding="fsdp", data=str(whole / "texts"))  # its name is part of the config


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return trained(asdict(small(folder, **SAVED))), folder


@pytest.fixture(scope="module")
def in_two(tmp_path_factory, alone):
    """Runs of two ranks, and their folders."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("ddp", "fsdp", "parts", "more")}
    runs = [
        (small(folders["ddp"], **SAVED, sharding="ddp"), "never"),
        (small(folders["fsdp"], **SAVED, sharding="fsdp"), "never"),
        (small(folders["parts"], **SAVED, sharding="fsdp", accumulate=2), "never"),
        (begun_elsewhere(alone[1], folders["more"]), "auto"),
    ]
    found = together(2, *runs)
    return {name: (one, folders[name]) for name, one in zip(folders, found, strict=True)}


def assert_same(one, other):
    first, second = (dict(load_pretrained(found["model"]).named_parameters()) for found in (one, other))
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-4, rtol=0)


FOUR = taken_by_commit("four ranks", 3, ["src/tallystick/training/", "src/tallystick/models/", "tests/training/"])


def assert_trained(found, alone):
    assert found["losses"] == pytest.approx(alone[0]["losses"], abs=1e-4)
    assert found["validation"] == pytest.approx(alone[0]["validation"], abs=1e-4)
    assert_same(found, alone[0])


@pytest.mark.parametrize("sharding", ["ddp", "fsdp"])
def test_the_losses_of_two_ranks_are_those_of_one(alone, in_two, sharding):
    assert_trained(in_two[sharding][0], alone)


@pytest.mark.skipif(not FOUR, reason="one of three commits starts four ranks, and each that changes training")
def test_the_losses_of_four_ranks_are_those_of_one(tmp_path, alone):
    [found] = together(4, (small(tmp_path, **SAVED, sharding="fsdp"), "never"))
    assert_trained(found, alone)


def test_gradients_are_averaged_once_a_step_where_a_batch_is_read_in_parts(alone, in_two):
    assert in_two["parts"][0]["losses"] == pytest.approx(alone[0]["losses"], abs=1e-4)


@pytest.mark.parametrize("last", [False, True])
def test_gradients_are_sent_only_with_the_last_part_of_a_batch(tmp_path, last):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/init", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        with Ranks(2, 0, torch.device("cpu")).synchronising(model, last):
            assert model.require_backward_grad_sync == last
    finally:
        torch.distributed.destroy_process_group()


def test_two_ranks_go_on_where_one_stopped(alone, in_two):
    found = in_two["more"][0]
    assert found["losses"] == pytest.approx(alone[0]["losses"][3:], abs=1e-4)
    assert_same(found, alone[0])


def test_one_rank_goes_on_where_two_stopped(tmp_path, alone, in_two):
    [found] = together(1, (begun_elsewhere(in_two["fsdp"][1], tmp_path), "auto"))
    assert found["losses"] == pytest.approx(alone[0]["losses"][3:], abs=1e-4)
    assert_same(found, alone[0])


def test_ranks_that_do_not_divide_the_batch_are_refused(tmp_path, monkeypatch):
    from tallystick.errors import BadInput
    from tallystick.training.run import prepared

    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(BadInput, match="3 ranks cannot share 4 sequences equally"):
        prepared(small(tmp_path))


def test_ranks_are_refused_together_where_another_process_trains(tmp_path):
    config = small(tmp_path)
    with locked(Path(config.out)):
        said = said_by(2, [asdict(config), {}])
    assert f"is in use by process {os.getpid()} on" in said[0]
    assert said[1] == "rank 1 stops because another rank failed"


@pytest.mark.parametrize("place", ["_save_file", "write_progress"])
def test_a_disk_that_is_full_for_one_rank_ends_all(tmp_path, place):
    """The second writes its random numbers, the first alone what is written once."""
    rank = 1 if place == "_save_file" else 0
    said = said_by(2, [asdict(small(tmp_path, **SAVED)), {str(rank): place}])
    assert "step-00000003 could not be written: No space left on device; earlier checkpoints are kept" in said[rank]
    assert said[1 - rank] == f"rank {1 - rank} stops because another rank failed"
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def said_by(count, arguments):
    """Why each of so many ranks does not train."""
    with ranks(count, "training_tasks:refused", arguments) as all_of:
        return all_of.results()


def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    """Six times here; `python tests/support/training_tasks.py FOLDER 100 3` does it as often as one
    likes.
    """
    task = TESTS / "support" / "training_tasks.py"
    done = subprocess.run(
        [sys.executable, task, tmp_path, "6", "0.8"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ended, wrong = map(int, done.stdout.split())
    assert ended >= 1
    assert wrong == 0
