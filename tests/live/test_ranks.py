"""Functions run by several processes at once, which end in results or in an error, and in no
process left behind.
"""

import subprocess

import pytest
import torch

import rank_tasks
from tallystick.live.ranks import RanksFailed, ranks
from tallystick.live.subjects import seeded

pytestmark = pytest.mark.usefixtures("preloaded_module")


def run(function, *arguments, **options):
    with ranks(2, f"rank_tasks:{function}", list(arguments), **options) as started:
        return started.results()


@pytest.fixture
def processes(monkeypatch):
    """Those that are started."""
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return started


def test_a_rank_that_raises_is_named_with_what_it_said():
    with pytest.raises(RanksFailed, match=r"^rank 1 ended with 1: on purpose$"):
        run("broken_on_one")


def test_ranks_that_hang_are_ended(processes):
    with pytest.raises(RanksFailed, match=r"^rank 0, 1 did not end within 0\.5 seconds$"):
        run("hanging", longest=0.5)
    assert len(processes) == 2
    assert all(process.returncode is not None for process in processes)


def test_ranks_that_nobody_waits_for_are_ended(processes):
    with pytest.raises(KeyboardInterrupt), ranks(2, "rank_tasks:hanging", []):
        raise KeyboardInterrupt
    assert all(process.returncode is not None for process in processes)


def test_two_processes_find_the_tied_gradient_that_one_finds():
    model = seeded(rank_tasks.own)
    model(torch.tensor([[5, 6, 7]]))[0].sum().backward()
    for place, (rank, same, local, gradient) in enumerate(run("sharded_gradient", [5, 6, 7])):
        assert (rank, same) == (place, True)
        assert local == [20, 8]  # half of the rows
        assert torch.allclose(torch.tensor(gradient), model.tok_emb.weight.grad, atol=1e-6)
