"""A disk that fills at any write of a run: one line, and what was saved before is gone on with to
the same bits.
"""

from __future__ import annotations

import json
import resource
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from safetensors import SafetensorError

from tallystick.cli.main import main
from tallystick.errors import BadInput
from tallystick.training.checkpoints import checkpoint
from tallystick.training.run import prepared
from tallystick.training.train import train
from training import small


@contextmanager
def no_file_above(size: int):
    """The system refuses to let any file grow beyond that size, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def full(*arguments, **keywords):
    raise OSError(28, "No space left on device")


def full_in_rust(*arguments, **keywords):
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The weights of a run on a disk with room."""
    outcome = train(small(tmp_path_factory.mktemp("whole"), steps=6, save_every=3))
    return (Path(outcome.model) / "model.safetensors").read_bytes()


def goes_on(config, whole):
    """Fail unless the run goes on where its newest checkpoint stands, and ends with the same bits;
    nothing is left.
    """
    outcome = train(config, resume="auto")
    assert (Path(outcome.model) / "model.safetensors").read_bytes() == whole
    names = {path.name for path in Path(config.out).rglob("*")}
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.parametrize(
    ("place", "fails"),
    [
        ("_save_file", full),
        ("_save_file", full_in_rust),
        ("write_progress", full),
        ("seal", full),
        ("flush_to_disk", full),
        ("write_slices", full),
    ],
)
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch, whole, place, fails):
    config = small(tmp_path, steps=6, save_every=3)
    run = prepared(config)
    events = run.events()
    assert next(event.step for event in events if event.kind == "saved") == 3
    with monkeypatch.context() as patched:
        patched.setattr(f"tallystick.training.checkpoints.checkpoint.{place}", fails)
        with pytest.raises(
            BadInput, match=r"step-00000006 could not be written: .*No space .*; earlier checkpoints are kept"
        ):
            list(events)
    run.close()
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000003"]
    goes_on(config, whole)


@pytest.mark.parametrize("size", [0, 10, 300, 2000, 100_000])
def test_files_that_cannot_grow_leave_the_checkpoint_before(tmp_path, whole, size):
    config = small(tmp_path, steps=6, save_every=3)
    run = prepared(config)
    events = run.events()
    assert next(event.step for event in events if event.kind == "saved") == 3
    with no_file_above(size), pytest.raises(BadInput, match=r"step-00000006 could not be written: .*File too large"):
        list(events)
    run.close()
    goes_on(config, whole)


def test_a_model_that_cannot_be_written_leaves_the_one_before(tmp_path, whole):
    config = small(tmp_path, steps=6, save_every=3)
    train(config)
    with no_file_above(10_000), pytest.raises(BadInput, match=r"run/model could not be written: File too large"):
        train(config, resume="auto")
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == whole
    assert (tmp_path / "run" / "model" / "tokenizer.json").exists()
    goes_on(config, whole)


def test_what_a_run_left_that_was_killed_as_it_wrote_its_model_is_cleared(tmp_path, whole):
    config = small(tmp_path, steps=6, save_every=3)
    train(config)
    for name in (".model.0123abcd", ".model.0123abcd.old", ".model.mine", "model.0123abcd"):
        (tmp_path / "run" / name).mkdir()
    prepared(config, resume="auto").close()
    assert {path.name for path in (tmp_path / "run").iterdir() if "model." in path.name} == {
        ".model.mine",
        "model.0123abcd",
    }


def test_tokens_that_cannot_be_written_leave_nothing(tmp_path, whole):
    config = small(tmp_path, steps=6, save_every=3)
    with no_file_above(10_000), pytest.raises(BadInput, match="data could not be written: "):
        prepared(config)
    assert list((tmp_path / "run").iterdir()) == []
    goes_on(config, whole)


@pytest.mark.parametrize("kind", ["step", "saved", "done"])
def test_the_command_says_it_in_one_line(tmp_path, whole, monkeypatch, capsys, kind):
    """From the moment on when such an event is shown: the log, the checkpoint, the model or the
    curves cannot be written.
    """
    from tallystick.report.training import Follower

    config = small(tmp_path, steps=6, save_every=3)
    keys = {**asdict(config), "model": None}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None]
    lines += ["[model]", *(f"{key} = {json.dumps(value)}" for key, value in config.model.items())]
    (tmp_path / "run.toml").write_text("\n".join(lines))
    show, limits = Follower._show, resource.getrlimit(resource.RLIMIT_FSIZE)

    def filled(follower, event):
        show(follower, event)
        if event.kind == kind and event.step >= 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))

    with monkeypatch.context() as patched:
        patched.setattr(Follower, "_show", filled)
        try:
            code = main(["train", "--config", str(tmp_path / "run.toml")])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("tallystick: ")
    assert "could not be written: File too large" in said
    assert said.count("\n") == 1
    assert checkpoint.latest(tmp_path / "run")[0].name == ("step-00000003" if kind == "step" else "step-00000006")
    assert main(["train", "--config", str(tmp_path / "run.toml"), "--resume", "auto"]) == 0
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == whole
