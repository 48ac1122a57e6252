"""What bad input gets where ties are asked for: flags that are none, models that cannot run, disks
and memory too small.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import checkpoints
import tallystick
from tallystick.cli.main import main
from tied_checkpoints import EMBEDDING, HEAD, codes, llama, saved

# -- a flag that is none --------------------------------------------------------------------------

UNHEARD_OF = {"model_type": "unheard_of", "architectures": ["UnheardOfForCausalLM"]}
ODD = ["true", "false", 1, 0, None, [], {}]


@pytest.mark.parametrize("flag", ODD, ids=repr)
@pytest.mark.parametrize(
    "config",
    [
        lambda flag: {"tie_word_embeddings": flag},  # beside a checkpoint of a native type
        lambda flag: {**UNHEARD_OF, "tie_word_embeddings": flag},
        lambda flag: {**UNHEARD_OF, "text_config": {"tie_word_embeddings": flag}},
    ],
    ids=["native", "not native", "nested"],
)
def test_a_flag_that_is_neither_true_nor_false_is_not_guessed(tmp_path, config, flag):
    saved(llama(tie_word_embeddings=True), tmp_path, **config(flag))
    answer = tallystick.ties(tmp_path)
    assert (answer.verdict, codes(answer)) == ("unknown", ["config-not-read"])
    assert "tie_word_embeddings is " in answer.problems[0].message
    assert answer.problems[0].message.endswith("expected true or false")


@pytest.mark.parametrize("model_type", ["llama", "t5"])
def test_a_config_alone_with_such_a_flag_is_refused(model_type):
    with pytest.raises(tallystick.BadInput, match="tie_word_embeddings is the string 'false', expected true or false"):
        tallystick.ties({"model_type": model_type, "tie_word_embeddings": "false"})


# -- a model that cannot run ----------------------------------------------------------------------


class Broken(nn.Module):
    """It holds a tie, and no forward pass ends well."""

    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(7, 3)
        self.lm_head = nn.Linear(3, 7, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, *_):
        raise RuntimeError("no kernel for this device")


def test_no_question_needs_a_forward_pass():
    model = Broken()
    tallystick.assert_tied(model)
    assert tallystick.ties(model).groups[0].relation == "tied"
    with pytest.raises(AssertionError, match="were tied and are copied"), tallystick.watch(model):
        model.lm_head.weight = nn.Parameter(model.wte.weight.detach().clone())
    optimizer = torch.optim.AdamW(model.parameters())
    (done,) = tallystick.retie(model, optimizer=optimizer)
    assert done.was == "copied"
    assert [finding for finding in tallystick.check_optimizer(model, optimizer) if finding.problem] == []


# -- larger than memory ---------------------------------------------------------------------------

LIMIT = 150 * 2**20  # bytes of address space for the whole process
MATRIX = 200_000_000  # bytes of each of two matrices


@pytest.fixture
def large(tmp_path):
    """Two equal matrices, nearly all of them a hole."""
    pytest.importorskip("resource")
    path = checkpoints.write(tmp_path / "model.safetensors", {EMBEDDING: (5000, 10_000), HEAD: (5000, 10_000)})
    data = path.stat().st_size - 2 * MATRIX
    with path.open("r+b") as file:
        for start in (data, data + MATRIX):
            file.seek(start)
            file.write(b"\1\2\3\4")  # a matrix of one value alone is no duplicate worth a line
    checkpoints.write_config(tmp_path, {"model_type": "unheard_of", "tie_word_embeddings": True})
    return tmp_path


def test_values_larger_than_memory_are_compared_in_blocks(large):
    code = (
        "import resource, sys; from tallystick.cli.main import main;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT})); sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "ties", str(large), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    (group,) = json.loads(done.stdout)["groups"]
    assert (set(group["names"]), group["relation"], group["wasted_bytes"]) == ({EMBEDDING, HEAD}, "copied", MATRIX)


# -- a target that cannot be written --------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    return saved(llama(tie_word_embeddings=False), tmp_path / "in", tie_word_embeddings=True)


def fix(folder, out):
    return main(["ties", str(folder), "--fix", str(out), "--as", "tied"])


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_target_that_is_read_only(folder, monkeypatch, capsys):
    """Permissions do not stop root, so the file system itself refuses here."""

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    before = contents(folder.parent)
    monkeypatch.setattr(Path, "mkdir", read_only)
    assert fix(folder, folder.parent / "out") == 2
    assert "Read-only file system" in capsys.readouterr().err
    assert contents(folder.parent) == before


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that nobody may write")
def test_a_target_where_nobody_may_write(folder, capsys):
    assert fix(folder, "/proc/self/out") == 2
    error = capsys.readouterr().err
    assert error.startswith("tallystick: /proc/self/out could not be written: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("room", [0, 700, 3000])
def test_a_disk_that_fills_up_while_it_is_written_leaves_nothing(folder, room):
    """The system itself cuts the write short: at the first byte, in the config, and in the
    weights.
    """
    pytest.importorskip("resource")
    code = (
        "import resource, signal, sys; from tallystick.cli.main import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); sys.exit(main(sys.argv[1:]))"
    )
    before = contents(folder.parent)
    # -B: the limit would cut the byte code of our modules short too, for every later run.
    command = [
        sys.executable,
        "-B",
        "-c",
        code,
        "ties",
        str(folder),
        "--fix",
        str(folder.parent / "out"),
        "--as",
        "tied",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr[-1000:]
    assert "could not be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert contents(folder.parent) == before
    assert os.listdir(folder.parent) == ["in"]


def test_weights_that_shrink_while_they_are_copied(folder, monkeypatch, capsys):
    from tallystick.sources.checkpoint import repair

    def shrink_first(source, path, *rest):
        path.write_bytes(path.read_bytes()[:2500])
        write_file(source, path, *rest)

    write_file = repair._write_file
    monkeypatch.setattr(repair, "_write_file", shrink_first)
    assert fix(folder, folder.parent / "out") == 2
    assert "shrank while it was copied" in capsys.readouterr().err
    assert os.listdir(folder.parent) == ["in"]


def test_a_target_inside_the_folder_itself_is_refused(folder, capsys):
    before = contents(folder)
    for out in (folder, folder / "out"):
        assert fix(folder, out) == 2
    assert "name a folder outside it" in capsys.readouterr().err
    assert contents(folder) == before
