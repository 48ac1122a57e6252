"""What is written is whole under its name or not there, whenever the writer is killed; the next
writer clears up.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoints import write_config
from killed_checkpoint import checkpoint
from repository import TESTS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each kill is of a process of its own")
with_torch = pytest.mark.usefixtures("preloaded")

HIDDEN = re.compile(r"\.(out|picture\.svg)\.[0-9a-f]{8}\.partial")

BEGIN = """
import hashlib, io, json, os, shutil, sys
from contextlib import redirect_stdout
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from killing import done_apart, killed_at_each_step
folder, out = Path(sys.argv[2]), Path(sys.argv[2]) / sys.argv[3]
def seen():
    hidden = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
    whole = {path.relative_to(folder).as_posix(): path.read_bytes() for path in [out, *out.rglob("*")] if path.is_file()}
    digest = hashlib.sha256(repr(sorted(whole.items())).encode()).hexdigest() if os.path.lexists(out) else None
    return hidden, digest
"""

FIX = """
from tallystick.cli.main import main
def work():
    with redirect_stdout(io.StringIO()):
        assert main(["ties", str(folder / "in"), "--fix", str(out), "--as", "tied"]) == 0
"""

SAVE = """
import torch
from tallystick.models import Decoder, load_pretrained, save_pretrained
decoder = Decoder.of({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 1, "vocab_size": 16, "n_positions": 4})
def work():
    save_pretrained(decoder, out, overwrite=True, max_shard_size=1000)
"""

EXPORT = """
from types import SimpleNamespace
from tallystick.models import Decoder
from tallystick.models.tokens import Tokenizer
from tallystick.sources import run_folder
from tallystick.training import train
train.MODEL = "out"
config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 1, "vocab_size": 257, "n_positions": 4}
run = SimpleNamespace(
    decoder=Decoder.of(config), ranks=SimpleNamespace(first=True, count=1), config=SimpleNamespace(out=str(folder)),
    corpus=SimpleNamespace(tokenizer=Tokenizer.bytes()),
)
def work():
    train._export(run)
"""

PLOT = """
from tallystick.cli.main import main
def work():
    with redirect_stdout(io.StringIO()):
        assert main(["memory", "gpt2", "--sequence", "128,256", "--plot", str(out)]) == 0
"""

EACH = """
kept = folder.with_name("kept")
shutil.copytree(folder, kept)
work()  # here too, so that all is imported before the others begin
shutil.rmtree(folder)
shutil.copytree(kept, folder)
before, steps, again = seen()[1], [], []
for step in killed_at_each_step(work, folder):
    steps.append(seen())
    if before is not None or not os.path.lexists(out):
        done_apart(work)
        again.append(seen())
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
print(json.dumps({"before": before, "steps": steps, "again": again, "last": seen()}))
"""


def assert_whole_each_time(work: str, folder: Path, name: str = "out") -> None:
    """Kill some work before each of its steps, each time followed by the same work to its end.

    After a kill there is what was there before, or all that is to be written: nothing else has the
    name. Afterwards nothing hidden is left.
    """
    words = [sys.executable, "-c", BEGIN + work + EACH, str(TESTS / "support"), str(folder), name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    hidden, whole = found["last"]
    assert not hidden
    assert whole not in (None, found["before"])
    assert {digest for _, digest in found["steps"]} == {found["before"], whole}
    assert found["again"]
    assert all(once == [[], whole] for once in found["again"])
    left = [name for names, _ in found["steps"] for name in names]
    assert left
    assert all(HIDDEN.fullmatch(name) for name in left)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_fixed_copy(folder):
    checkpoint(folder / "in")
    assert_whole_each_time(FIX, folder)


@with_torch
def test_a_saved_decoder(folder):
    assert_whole_each_time(SAVE, folder)


@with_torch
def test_a_saved_decoder_that_takes_the_place_of_another(folder):
    (folder / "out").mkdir()
    write_config(folder / "out", {"model_type": "gpt2"})
    (folder / "out" / "notes.txt").write_text("kept")
    assert_whole_each_time(SAVE, folder)
    assert (folder / "out" / "notes.txt").read_text() == "kept"


@with_torch
def test_the_model_of_a_run_has_its_tokenizer(folder):
    assert_whole_each_time(EXPORT, folder)
    assert (folder / "out" / "tokenizer.json").exists()


def test_a_picture(folder):
    assert_whole_each_time(PLOT, folder, "picture.svg")


def test_a_picture_that_takes_the_place_of_another(folder):
    (folder / "picture.svg").write_text("an older one")
    assert_whole_each_time(PLOT, folder, "picture.svg")
