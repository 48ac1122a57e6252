"""The core on a system without fork, locks, limits, folder descriptors and most signals.

No Windows and no macOS is at hand: these take away what Windows lacks (`bare_system`).
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bare_system
from checkpoints import data_bytes, header_of, write_raw
from repository import ROOT, TESTS
from tallystick.cli import streams
from tallystick.files import atomic
from tallystick.files.atomic import atomic_folder, write_file

DRIVER = TESTS / "support" / "bare_system.py"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, str(DRIVER), *map(str, words)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tied checkpoint that stores its embedding a second time, as the head."""
    d, inner, layer = 4, 6, "model.layers.0."
    square, wide = {key: [d, d] for key in "qkvo"}, {"gate": [inner, d], "up": [inner, d], "down": [d, inner]}
    shapes = {
        "model.embed_tokens.weight": [5, d],
        **{f"{layer}self_attn.{name}_proj.weight": shape for name, shape in square.items()},
        **{f"{layer}mlp.{name}_proj.weight": shape for name, shape in wide.items()},
        **{f"{layer}{norm}_layernorm.weight": [d] for norm in ("input", "post_attention")},
        "model.norm.weight": [d],
        "lm_head.weight": [5, d],
    }
    config = {"model_type": "llama", "vocab_size": 5, "hidden_size": d, "intermediate_size": inner, "num_hidden_layers": 1,
              "num_attention_heads": 2, "tie_word_embeddings": True}  # fmt: skip
    folder, header = tmp_path / "model", header_of(shapes)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_raw(folder / "model.safetensors", header, data_bytes(header))
    return folder


def test_every_file_that_needs_no_library_is_imported() -> None:
    done = run("imports")
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    for needed in (
        "isolation.limits",
        "files.atomic",
        "cli.streams",
        "sources.transformers_meta.process",
        "web.process",
        "live.ranks",
    ):
        assert f"tallystick.{needed}" in found


def test_a_folder_is_counted_and_repaired(folder: Path) -> None:
    counted = run("count", folder, "--format", "json")
    assert counted.returncode == 0, counted.stderr
    assert json.loads(counted.stdout)["totals"]["unique"] == 5 * 4 + 4 * 4 * 4 + 3 * 4 * 6 + 3 * 4
    out = folder.with_name("out")
    fixed = run("ties", folder, "--fix", out)
    assert (fixed.returncode, fixed.stderr) == (0, "")
    assert {path.name for path in out.iterdir()} == {"config.json", "model.safetensors"}
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


def test_a_machine_that_does_not_say_its_memory_is_answered_in_one_line() -> None:
    done = run("memory", "gpt2", "--device", "auto")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "say bytes, such as 24GB" in done.stderr


def test_a_reader_who_left_is_no_error_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows reports a closed pipe as an invalid argument."""
    left = OSError(errno.EINVAL, "Invalid argument")
    assert not streams._left(left)
    monkeypatch.setattr(sys, "platform", "win32")
    assert streams._left(left)
    assert not streams._left(OSError(errno.ENOSPC, "No space left on device"))


def test_files_are_flushed_where_that_needs_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows flushes no file that is open for reading only, and opens no folder."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", bare_system.opened(os.open))
    monkeypatch.setattr(os, "fsync", bare_system.flushed(os.fsync))
    monkeypatch.setattr(atomic, "fcntl", None)
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "config.json").write_text("{}", encoding="utf-8")
    write_file(tmp_path / "note", b"whole")
    assert (tmp_path / "out" / "config.json").read_bytes() == b"{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["note", "out"]
