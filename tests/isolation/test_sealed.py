"""Sealed code: each way out is refused, and open again afterwards."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.isolation.sealed import Refused, sealed


def _import(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("strangers_code")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("strangers_code", None)


WAYS: dict[str, Callable[[Path], object]] = {
    "reach the network": lambda _: socket.create_connection(("127.0.0.1", 9)),
    "start a program": lambda _: subprocess.run(["true"], check=True),
    "ask on the terminal": lambda _: input(),
    "write x": lambda folder: (folder / "x").write_text(""),
    "write gone": lambda folder: (folder / "gone").unlink(),
    "write strangers_code.py": lambda folder: os.link(folder / "strangers_code.py", folder / "new"),
    "read strangers_code": _import,
    "read gone": lambda folder: (folder / "gone").read_bytes(),
}


@pytest.mark.parametrize("words", WAYS)
def test_a_way_out_is_refused(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "strangers_code.py").write_text("ran = True\n")
    (tmp_path / "gone").write_text("")
    # The folder is below that of temporary files, in which sealed code may write.
    monkeypatch.setattr("tallystick.isolation.sealed._temporary", lambda: (os.devnull,))
    with sealed(), pytest.raises(Refused, match=f"^{words}"):
        WAYS[words](tmp_path)


def test_another_thread_and_what_follows_are_not_sealed():
    def write() -> None:
        with tempfile.TemporaryFile() as file:
            written.append(file.write(b"x"))
            socket.socket().close()

    written: list[int] = []
    with sealed():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    write()
    assert written == [1, 1]


def test_an_installed_module_can_be_imported_inside():
    with sealed():
        importlib.reload(importlib.import_module("colorsys"))


def test_a_module_without_bytecode_can_be_imported_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not every installer compiles what it installs."""
    (tmp_path / "uncompiled.py").write_text("ran = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tallystick.isolation.sealed._roots", lambda: (str(tmp_path),))
    monkeypatch.setattr("tallystick.isolation.sealed._temporary", lambda: (os.devnull,))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    with sealed():
        assert importlib.import_module("uncompiled").ran
    assert not sys.dont_write_bytecode
    assert [path.name for path in tmp_path.iterdir()] == ["uncompiled.py"]
