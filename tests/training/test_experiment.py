"""The experiment: the same text for all, as many parameters where it says so, a page that says what
came out.
"""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

import tallystick
from tallystick.cli.main import main
from tallystick.training.run import Run
from training import text_in

MODEL = [
    "hidden_size=32",
    "intermediate_size=40",
    "num_hidden_layers=1",
    "num_attention_heads=2",
    "num_key_value_heads=2",
]


def told(folder, *more):
    """A command too short to show anything."""
    settings = ["tokenizer=bpe:280", "sequence=16", "batch=4", "eval_batches=2", f"data={text_in(folder)}", *more]
    options = ["--steps", "4", "--seeds", "2", "--out", str(folder / "out")]
    return ["experiment", "tying", *options, "--set", *settings, *(f"model.{key}" for key in MODEL)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiment")
    return main(told(folder)), folder / "out"


def rows_of(out):
    """The first table, a row by its name."""
    lines = (out / "tying.md").read_text().split("## During training")[0].splitlines()
    return {cells[1].strip(): cells for cells in (line.split("|") for line in lines) if len(cells) > 6}


def ends_of(out, name):
    """What the logs of a variant's runs have as the last evaluation, a seed each."""
    logs = [[json.loads(line) for line in (out / f"{name}-{seed}" / "log.jsonl").open()] for seed in (0, 1)]
    return [[line for line in log if line["kind"] == "evaluated"][-1] for log in logs]


def test_it_leaves_a_page_and_its_picture(made):
    code, out = made
    assert code == 0
    text = (out / "tying.md").read_text()
    assert "| tied | 32 |" in text
    assert (out / "tying.svg").read_text().lstrip().startswith("<?xml")
    assert "](tying.svg)" in text
    assert "## Limits" in text


def test_the_parameters_are_those_of_the_ledger_and_nearly_equal_where_they_should_be(made):
    rows = rows_of(made[1])
    counts = {name: int(rows[name][3].replace(",", "")) for name in ("tied", "untied", "untied, narrower")}
    vocabulary = json.loads((made[1] / "tokens" / "tokenizer.json").read_text())
    size = len(vocabulary["model"]["vocab"])
    config = {
        "model_type": "llama", "vocab_size": size, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2,
    }  # fmt: skip
    assert counts["tied"] == tallystick.count(config, tie_word_embeddings=True).total
    assert counts["untied"] == tallystick.count(config).total == counts["tied"] + size * 32
    assert counts["untied, narrower"] == pytest.approx(counts["tied"], rel=0.01)
    assert float(rows["tied"][6]) == 1
    assert abs(float(rows["untied"][6])) < 0.5


def test_the_numbers_are_those_of_the_logs(made):
    out = made[1]
    text, rows = (out / "tying.md").read_text(), rows_of(out)
    ends = {name: ends_of(out, name.replace(", ", "-")) for name in ("tied", "untied", "untied, narrower")}
    losses = {name: [line["loss"] for line in lines] for name, lines in ends.items()}
    for name, (one, other) in losses.items():
        assert rows[name][5].strip() == f"{(one + other) / 2:.4f} ± {abs(one - other) / 2**0.5:.4f}"
        assert float(rows[name][6]) == pytest.approx(sum(line["cosine"] for line in ends[name]) / 2, abs=5e-4)
    one, other = (mine - tied for mine, tied in zip(losses["untied"], losses["tied"], strict=True))
    assert f"- untied: {(one + other) / 2:+.4f} ± {abs(one - other) / 2**0.5:.4f} nats per token relative to" in text
    lower = sum(gap > 0 for gap in (one, other))
    verdict = {0: "higher in every one", 1: "lower in 1 of 2: no clear difference", 2: "lower in every one"}[lower]
    assert f"(+{100 * 32 * 280 / int(rows['tied'][3].replace(',', '')):.2f}%); the tied one ends {verdict}" in text
    assert "| 4 | 256 |" in text  # the last step, and its tokens of 4 × 16


def test_the_page_names_the_command_that_made_it(made):
    (said,) = re.findall(r"`(tallystick experiment [^`]*)`", (made[1] / "tying.md").read_text())
    assert shlex.split(said)[1:] == [word for word in told(made[1].parent) if word not in ("--out", str(made[1]))]


def test_what_is_done_is_not_done_again(made, capsys):
    before = {path: path.stat().st_mtime_ns for path in made[1].glob("*/checkpoints/*")}
    page = (made[1] / "tying.md").read_text()
    (made[1] / "tying.md").unlink()
    capsys.readouterr()
    assert main(told(made[1].parent)) == 0
    assert (made[1] / "tying.md").read_text() == page
    assert {path: path.stat().st_mtime_ns for path in made[1].glob("*/checkpoints/*")} == before
    assert main(told(made[1].parent, "batch=8")) == 2
    assert "is from a run with batch = 4, but this run has 8" in capsys.readouterr().err


def test_an_experiment_that_is_stopped_goes_on_to_the_same_page(made, tmp_path, monkeypatch, capsys):
    step = Run._step

    def asked_to_stop(run):
        if run.progress.step == 1 and Path(run.config.out).name == "untied-0":
            os.kill(os.getpid(), signal.SIGINT)
        return step(run)

    monkeypatch.setattr(Run, "_step", asked_to_stop)
    assert main(told(tmp_path)) == 0
    assert "stopped, and saved: the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "out" / "tying.md").exists()
    monkeypatch.undo()
    assert main(told(tmp_path)) == 0
    assert (tmp_path / "out" / "tying.svg").read_bytes() == (made[1] / "tying.svg").read_bytes()


def test_all_runs_read_the_same_tokens(made):
    logs = sorted(path.name for path in made[1].iterdir())
    assert [name for name in logs if name.endswith(("-0", "-1"))] == [
        "tied-0", "tied-1", "untied-0", "untied-1", "untied-narrower-0", "untied-narrower-1",
    ]  # fmt: skip
    assert not list(made[1].glob("*/data"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "0"], "--seeds is 0, expected 1 or more"),
        (["--set", "source=gpt2"], "gpt2 has no key 'intermediate_size' to set"),
        (["--set", "sequence=65"], "sequence 65 is longer than the 64 positions of the model"),
    ],
)
def test_bad_input_is_one_line_before_a_step(tmp_path, capsys, options, message):
    assert main(["experiment", "tying", "--out", str(tmp_path), "--set", f"data={text_in(tmp_path)}", *options]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_picture_that_cannot_be_drawn_is_said_before_a_step(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(told(tmp_path)) == 2
    assert "pip install 'tallystick[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
