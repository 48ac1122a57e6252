"""One run at a time in a folder, however the one before ended; who only reads is not kept out."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tallystick.cli.main import main
from tallystick.errors import BadInput
from tallystick.training.lock import NAME, locked
from tallystick.training.run import prepared
from training import small

HOLDER = """
import sys
from pathlib import Path
from tallystick.training.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path):
    """Another process that holds a folder until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.stdin.close()


def test_the_second_is_told_who_holds_it(tmp_path):
    with holder(tmp_path) as process:
        with pytest.raises(BadInput, match="is in use by process") as refused, locked(tmp_path):
            pass
        said = str(refused.value)
        assert f"process {process.pid} on {socket.gethostname()!r} since '20" in said
        assert said.endswith("UTC': wait for that run, stop it, or choose another out")
    assert not (tmp_path / NAME).exists()
    with locked(tmp_path) as why_not:
        assert why_not == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_holds_nothing(tmp_path, number):
    with holder(tmp_path) as process:
        process.send_signal(number)
        process.wait()
        assert (tmp_path / NAME).exists()
        with locked(tmp_path):
            assert json.loads((tmp_path / NAME).read_text())["process"] == os.getpid()
    assert not (tmp_path / NAME).exists()


def test_a_second_run_neither_begins_nor_removes_what_the_first_is_saving(tmp_path, capsys):
    config = small(tmp_path, steps=2)
    partial = tmp_path / "run" / "checkpoints" / ".step-00000002.partial"
    partial.mkdir(parents=True)
    (partial / "progress.json").write_text("{")
    settings = [f"out={config.out}", f"data={config.data}", "source=llama", "sequence=16"]
    with holder(tmp_path / "run"):
        for resume in ("auto", "never", str(partial)):
            assert main(["train", "--resume", resume, "--set", *settings]) == 2
            said = capsys.readouterr()
            assert "is in use by process" in said.err
            assert said.err.count("\n") == 1
            assert said.out == ""
        assert (partial / "progress.json").exists()
    run = prepared(config)
    assert not partial.exists()
    run.close()


def test_an_experiment_holds_its_folder(tmp_path, capsys):
    with holder(tmp_path / "out"):
        assert main(["experiment", "tying", "--out", str(tmp_path / "out")]) == 2
    assert "is in use by process" in capsys.readouterr().err


def test_commands_that_read_are_not_kept_out(tmp_path, capsys):
    from tallystick.training.train import train

    train(small(tmp_path, steps=1))
    (tmp_path / "a.txt").write_text("tally stick")
    run = str(tmp_path / "run")
    with holder(tmp_path / "run"):
        assert main(["count", run]) == 0
        assert main(["generate", run, "--prompt", "tally", "--tokens", "1"]) == 0
        assert main(["evaluate", run, str(tmp_path / "a.txt")]) == 0


def test_a_run_that_ends_or_is_refused_or_forgotten_leaves_no_lock(tmp_path):
    config = small(tmp_path, steps=1)
    run = prepared(config)
    assert (tmp_path / "run" / NAME).exists()
    again = prepared(config)  # in the same process
    run.close()
    assert (tmp_path / "run" / NAME).exists()
    del again
    assert not (tmp_path / "run" / NAME).exists()
    with pytest.raises(BadInput, match="no checkpoint"):
        prepared(config, resume=str(tmp_path / "none"))
    assert not (tmp_path / "run" / NAME).exists()


def test_a_forked_process_does_not_hold_what_its_parent_holds(tmp_path):
    with locked(tmp_path):
        child = os.fork()
        if child == 0:
            try:
                with locked(tmp_path):
                    os._exit(1)
            except BadInput:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (tmp_path / NAME).exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "link to a device", "pipe", "folder"])
def test_a_lock_that_is_no_regular_file_is_named(tmp_path, kind):
    path, other = tmp_path / NAME, tmp_path / "other"
    match kind:
        case "link":
            other.write_text("mine")
            path.symlink_to(other)
        case "dangling link":
            path.symlink_to(other)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    with pytest.raises(BadInput, match=r"\.lock is not a regular file: remove it"), locked(tmp_path):
        pass
    assert not other.exists() or other.read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"{", b"5", b"[" * 4096, b"\xff", b'{"process": 1}', b"9" * 5000])
def test_whatever_a_lock_holds_it_is_taken_over_or_named(tmp_path, content):
    path = tmp_path / NAME
    path.write_bytes(content)
    with locked(tmp_path):
        pass
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="is in use by another process: "), locked(tmp_path):
            pass


def test_what_a_lock_says_is_shown_as_text(tmp_path):
    with (tmp_path / NAME).open("w") as file:
        json.dump({"process": "\x1b[2J", "host": "h" * 2000, "since": {"a": 1}}, file)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="in use by process '") as refused, locked(tmp_path):
            pass
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_disk_without_locks_is_said_and_not_refused(tmp_path, monkeypatch, number):
    def none(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    run = prepared(small(tmp_path, steps=1))
    assert run.notes == [
        f"{tmp_path / 'run'} is not locked (its disk does not support it: {os.strerror(number)}): do not start a second run in it"
    ]
    run.close()


def test_a_file_that_loses_its_name_before_it_is_locked_is_not_the_lock(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def slow(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            (tmp_path / NAME).unlink()  # by a holder that ends now
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", slow)
    with locked(tmp_path):
        assert len(calls) == 2
        assert (tmp_path / NAME).stat().st_ino == os.fstat(calls[1][0]).st_ino


def test_a_folder_where_nothing_can_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file cannot be written: "), locked(tmp_path / "file"):
        pass
