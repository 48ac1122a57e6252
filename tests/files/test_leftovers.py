"""What killed writers left beside a name: removed by the next writer of it, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tallystick import BadInput
from tallystick.files import atomic
from tallystick.files.atomic import atomic_folder, write_file

pytestmark = pytest.mark.skipif(atomic.fcntl is None, reason="without locks nobody knows whose a folder is")

LEFT = ".out.0123abcd.partial"


def left(folder: Path, name: str = LEFT) -> Path:
    """A folder as a killed process leaves it."""
    path = folder / name
    path.mkdir()
    (path / "half.txt").write_text("ha")
    return path


def written(folder: Path, *, replace: bool = False) -> Path:
    """A folder named `out`, written whole."""
    with atomic_folder(folder / "out", replace=replace) as partial:
        (partial / "whole.txt").write_text("whole")
    return folder / "out"


def test_a_folder_that_was_left_is_removed(tmp_path: Path) -> None:
    path = left(tmp_path)
    path.chmod(0o500)
    written(tmp_path)
    assert os.listdir(tmp_path) == ["out"]


def test_a_file_that_was_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / LEFT).write_text("ha")
    write_file(tmp_path / "out", b"whole")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "name",
    [".out.0123abcd", ".out.20260101", ".out.0123ABCD.partial", ".out.0123abcd5.partial", ".outer.0123abcd.partial",
     "out.0123abcd.partial", ".out.0123abcd.partial.txt"],
)  # fmt: skip
def test_what_has_another_name_stays(tmp_path: Path, name: str) -> None:
    left(tmp_path, name)
    written(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "out"])


def test_a_link_that_has_such_a_name_stays_with_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    (tmp_path / LEFT).symlink_to("mine")
    written(tmp_path)
    assert (tmp_path / LEFT / "file").read_text() == "mine"


HOLD = """
import sys
from pathlib import Path
from tallystick.files.atomic import atomic_folder
with atomic_folder(Path(sys.argv[1])) as partial:
    (partial / "half.txt").write_text("ha")
    print(partial, flush=True)
    sys.stdin.read()
"""


def test_what_a_running_process_writes_stays_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        partial = Path(process.stdout.readline().strip())
        written(tmp_path)
        assert (partial / "half.txt").exists()
        process.kill()
    written(tmp_path, replace=True)
    assert os.listdir(tmp_path) == ["out"]


def test_of_two_that_write_one_name_the_second_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="already exists"), atomic_folder(tmp_path / "out"):
        written(tmp_path)
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / "whole.txt").exists()


def test_a_folder_that_had_made_way_gets_its_name_back(tmp_path: Path) -> None:
    """Where two names cannot be exchanged in one step, a kill may fall between two."""
    left(tmp_path, ".out.0123abcd.old")
    with suppress(ZeroDivisionError), atomic_folder(tmp_path / "out", replace=True):
        assert (tmp_path / "out" / "half.txt").exists()
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_is_exchanged_without_a_moment_in_which_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not atomic._exchanged(left(tmp_path), left(tmp_path, "other")):
        pytest.skip("this file system cannot exchange two names")
    written(tmp_path)
    monkeypatch.setattr(Path, "rename", lambda *_: pytest.fail("moved away"))
    written(tmp_path, replace=True)
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


def test_a_place_without_locks_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    left(tmp_path)
    monkeypatch.setattr(atomic.fcntl, "flock", no_locks)
    written(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [LEFT, "out"]


def test_a_folder_that_another_process_is_about_to_remove_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its locking it looks like one that a killed process left."""
    flock = atomic.fcntl.flock

    def held_by_another(*_: object) -> None:
        monkeypatch.setattr(atomic.fcntl, "flock", flock)
        raise BlockingIOError

    monkeypatch.setattr(atomic.fcntl, "flock", held_by_another)
    assert os.listdir(written(tmp_path)) == ["whole.txt"]
    (held,) = set(os.listdir(tmp_path)) - {"out"}
    assert os.listdir(tmp_path / held) == []


@pytest.mark.parametrize("path", ["a\0b", "file/out", "n" * 300])
def test_a_name_that_cannot_be_is_one_line(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"could not be written: |is not a path: "), atomic_folder(tmp_path / path):
        pytest.fail("written")
    with pytest.raises(BadInput):
        write_file(tmp_path / path, b"")
    assert os.listdir(tmp_path) == ["file"]
