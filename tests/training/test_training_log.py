"""What TensorBoard and Weights & Biases are given of a run; stand-ins take it, with the signatures
of the real ones.
"""

from __future__ import annotations

import resource
import sys
from types import ModuleType

import pytest

from tallystick.errors import BadInput
from tallystick.training.log import read_log
from tallystick.training.train import train
from training import small


@pytest.fixture
def board(monkeypatch):
    """`torch.utils.tensorboard`, remembering what it is told."""
    module = ModuleType("torch.utils.tensorboard")
    module.told = []

    class SummaryWriter:
        def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
            module.told.append(("began", log_dir.name, purge_step))

        def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False):
            module.told.append((tag, global_step, scalar_value))

        def close(self):
            module.told.append(("closed",))

    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def wandb(monkeypatch):
    """`wandb`, remembering what it is told."""
    module = ModuleType("wandb")
    module.told = []

    class Error(Exception):
        pass

    class Run:
        def log(self, data, step=None, commit=None):
            module.told.append((step, data))

        def finish(self, exit_code=None, quiet=None):
            module.told.append(("finished", exit_code))

    def init(entity=None, project=None, dir=None, id=None, *, name=None, config=None, resume=None):  # noqa: A002
        if project == "no/name":
            raise Error("Invalid project name 'no/name': found '/'\nmore of it")
        module.told.append(("began", project, id, resume, config["steps"]))
        return Run()

    module.Error, module.init = Error, init
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_tensorboard_has_every_number_at_its_step(tmp_path, board):
    outcome = train(small(tmp_path, steps=3, eval_every=3, save_every=2, tensorboard=True))
    assert board.told[0] == ("began", "tensorboard", 1)
    assert [(told[0], told[1]) for told in board.told if told[0].endswith("/loss")] == [
        ("step/loss", 1), ("step/loss", 2), ("step/loss", 3), ("evaluated/loss", 3),
    ]  # fmt: skip
    assert ("evaluated/loss", 3, outcome.validation_loss) in board.told
    assert board.told[-1] == ("closed",)


def test_what_a_run_that_goes_on_does_again_is_purged(tmp_path, board):
    train(small(tmp_path, steps=4, save_every=2, tensorboard=True, keep=9))
    board.told.clear()
    train(
        small(tmp_path, steps=4, save_every=2, tensorboard=True), resume=str(tmp_path / "run/checkpoints/step-00000002")
    )
    assert board.told[0] == ("began", "tensorboard", 3)


def test_wandb_has_the_config_and_every_number_and_goes_on_with_its_run(tmp_path, wandb):
    train(small(tmp_path, steps=4, save_every=2, wandb="tally", keep=9))
    (_, project, identity, resume, steps), *logged, finished = wandb.told
    assert (project, resume, steps) == ("tally", "allow", 4)
    assert [step for step, data in logged if "step/loss" in data] == [1, 2, 3, 4]
    assert finished == ("finished", 0)
    again = tmp_path / "run" / "checkpoints" / "step-00000002"
    train(small(tmp_path, steps=4, save_every=2, wandb="tally"), resume=str(again))
    assert [told[2] for told in wandb.told if told[0] == "began"] == [identity, identity]


def test_wandb_is_told_that_a_run_failed(tmp_path, wandb):
    def fails(event):
        raise RuntimeError("the disk")

    with pytest.raises(RuntimeError, match="the disk"):
        train(small(tmp_path, wandb="tally"), planned=lambda plan: fails)
    assert wandb.told[-1] == ("finished", 1)


def test_what_wandb_refuses_is_one_line(tmp_path, wandb):
    with pytest.raises(BadInput, match=r"^train\(\): wandb = 'no/name': Invalid project name 'no/name': found '/'$"):
        train(small(tmp_path, wandb="no/name"))


def test_a_log_that_cannot_be_written_is_one_line_and_keeps_its_lines(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = tmp_path / "run" / "log.jsonl"

    def fill(event):
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10, limits[1]))

    try:
        with pytest.raises(BadInput, match=r"log.jsonl could not be written: File too large"):
            train(small(tmp_path), planned=lambda plan: fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [line["step"] for line in read_log(log)] == [1]


@pytest.mark.parametrize(
    ("settings", "module", "message"),
    [
        ({"tensorboard": True}, "torch.utils.tensorboard", "tensorboard = true needs .*: pip install tensorboard$"),
        ({"wandb": "tally"}, "wandb", "wandb = 'tally' needs .*: pip install wandb$"),
    ],
)
def test_what_is_not_installed_is_named_before_anything_is_made(tmp_path, monkeypatch, settings, module, message):
    monkeypatch.setitem(sys.modules, module, None)
    config = small(tmp_path, **settings)
    with pytest.raises(BadInput, match=message):
        train(config)
    assert not (tmp_path / "run").exists()
