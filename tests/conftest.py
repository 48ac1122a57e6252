"""Fixtures that several files of tests use."""

import gc
import importlib
import os
import sys
from pathlib import Path

import pytest

import measurements
from chromium import launched
from drawing import SEED
from preloaded import PYTHON, Preloaded

collect_ignore = ["watched"]  # imported by the processes that tests watch


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Python searches neither what is imported and collected here for garbage, nor later what was:
    a sixth of the CPU of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def add_architectures(monkeypatch):
    """Looks for types in one more folder. What it returns forgets them, as a test's end does."""
    from tallystick import architectures
    from tallystick.core.registry import REGISTRY

    added = []

    def forget():
        importlib.invalidate_caches()  # a file may be written within a tick of the clock
        for name in added:
            REGISTRY.pop(name, None)
            sys.modules.pop(f"{architectures.__name__}.{name}", None)

    def add(folder, *types):
        monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(folder)])
        added.extend(types)
        return forget

    yield add
    forget()


loaded = []  # what a run without torch may not import, in this process or a worker


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"TALLYSTICK_SEED={SEED} says which types the slow tests took")
    for line in measurements.summary(measurements.taken):
        terminalreporter.write_line(line)


def pytest_sessionfinish(session):
    """A worker hands on what it measured; the one process that all runs in writes it."""
    loaded.extend({"torch", "transformers"} & set(sys.modules))
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["loaded"] = loaded
    elif session.config.getoption("--without-torch") and loaded:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        raise AssertionError("torch was imported, though the run is one without it")
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["measured"] = [[*pair] for pair in measurements.taken.items()], measurements.new
    elif measurements.MODE == "write":
        measurements.write()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadgroup":
        return None
    from scheduling import ByFile

    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    counts, new = node.workeroutput.get("measured", ((), {})) if hasattr(node, "workeroutput") else ((), {})
    measurements.add(counts, new)
    loaded.extend(getattr(node, "workeroutput", {}).get("loaded", ()))


@pytest.fixture
def lone_rank():
    """A process group of this process alone, whose collectives do nothing.

    Not gloo: DistributedDataParallel lets go of a gloo group with the interpreter's lock held,
    while a thread of the group may wait for that very lock. Now and then the two wait for ever.
    """
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="FOLDER", help="where the views of the explorer's page are written")
    parser.addoption("--without-torch", action="store_true", help="skip each test that imports torch or transformers")


def pytest_configure(config):
    if config.getoption("--without-torch"):
        measurements.MODE = "none"
        sys.meta_path.insert(0, Skipping())
    elif not hasattr(config, "workerinput") and sys.platform == "linux":
        server = Preloaded()
        os.environ[PYTHON] = server.executable
        config.add_cleanup(server.close)


def _preloaded():
    """Processes that a test starts begin with torch and transformers imported, where they can."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "executable", os.environ.get(PYTHON, sys.executable))
        yield


preloaded = pytest.fixture(_preloaded)
preloaded_module = pytest.fixture(_preloaded, scope="module")  # for fixtures of a whole file too


class Skipping:
    """Skips the test that imports torch or transformers, which take longer to import than all
    others to run.
    """

    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "transformers"):
            pytest.skip(f"needs {name}", allow_module_level=True)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all pages."""
    with launched() as browser:
        yield browser


@pytest.fixture
def screenshots(request):
    """The folder that the user named for pictures of the page, or None."""
    folder = request.config.getoption("--screenshots")
    return folder and Path(folder)
