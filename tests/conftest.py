"""Fixtures that several files of tests use."""

from pathlib import Path

import pytest

from drawing import SEED

collect_ignore = ["watched"]  # imported by the processes that tests watch


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"TALLYSTICK_SEED={SEED} says which types the slow tests took")


@pytest.fixture
def lone_rank():
    """A process group of this process alone, whose collectives do nothing.

    Not gloo: DistributedDataParallel lets go of a gloo group with the interpreter's lock held, while a thread of the group
    may wait for that very lock. Now and then the two wait for ever.
    """
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="FOLDER", help="where the views of the explorer's page are written")


@pytest.fixture
def screenshots(request):
    """The folder that the user named for pictures of the page, or None."""
    folder = request.config.getoption("--screenshots")
    return folder and Path(folder)
