"""A run that has ended with two checkpoints, and the step that one goes on at in its folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.errors import BadInput
from tallystick.training.run import prepared
from tallystick.training.wholeness import WHOLE, seal
from training import small


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that has ended, with checkpoints of steps 2 and 4."""
    folder = tmp_path_factory.mktemp("made")
    config = small(folder, steps=4, save_every=2)
    run = prepared(config)
    list(run.events())
    run.close()
    return config


@pytest.fixture
def begun(made, tmp_path):
    """The same in a folder of its own."""
    shutil.copytree(made.out, tmp_path / "run")
    return replace(made, out=str(tmp_path / "run"))


def newest(config) -> Path:
    return Path(config.out) / "checkpoints" / "step-00000004"


def resumed(config) -> int | str:
    """The step that a run goes on at, or why it does not, in one line; another error fails the
    test.
    """
    try:
        run = prepared(config, resume="auto")
    except BadInput as error:
        line = str(error)
        assert line.isprintable()
        assert len(line) < 600 + 3 * len(config.out), line
        return line
    run.close()
    assert run.progress.step in (0, 2, 4)
    assert len(run.torn) == {4: 0, 2: 1, 0: 2}[run.progress.step]
    return run.progress.step


def sealed(folder: Path) -> None:
    """Give the files of a checkpoint the digests that they have now, as an attacker would."""
    (folder / WHOLE).unlink(missing_ok=True)
    seal(folder)
