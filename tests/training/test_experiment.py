"""The experiment: each variant at its best, equal where it says so, and a page of what came out."""

import json
import os
import re
import shlex
import signal
import sys
from math import inf, isinf, sqrt
from pathlib import Path

import pytest
import torch

import tallystick
from tallystick.cli.main import main
from tallystick.errors import BadInput
from tallystick.models import Decoder
from tallystick.models.tokens import Tokenizer
from tallystick.report.experiment.picture import drawn
from tallystick.report.experiment.verdicts import verdict
from tallystick.training.config import TrainConfig
from tallystick.training.experiment import search as searching
from tallystick.training.experiment import train_all
from tallystick.training.experiment.neighbours import agreement, alike, near, nearest
from tallystick.training.experiment.results import Comparison, Experiment, Mean, Moment, Trial, Variant
from tallystick.training.experiment.search import Setting, search
from tallystick.training.experiment.uses import uses
from tallystick.training.run import Run
from training import text_in

MODEL = [
    "hidden_size=32",
    "intermediate_size=40",
    "num_hidden_layers=1",
    "num_attention_heads=2",
    "num_key_value_heads=2",
]
STEPS, SEEDS = 8, 2
VARIANTS = ("tied", "untied", "untied, smaller", "untied, smaller, longer")


def asked(folder, *more):
    """A command too short to show anything."""
    settings = ["tokenizer=bpe:280", "sequence=16", "batch=4", "eval_batches=2", f"data={text_in(folder)}", *more]
    options = ["--steps", str(STEPS), "--seeds", str(SEEDS), "--out", str(folder / "out")]
    return ["experiment", "tying", *options, "--set", *settings, *(f"model.{key}" for key in MODEL)]


@pytest.fixture(scope="module")
def stays():
    """The search tries where it starts, and no neighbour."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(searching, "MOST", 0)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory, stays):
    folder = tmp_path_factory.mktemp("experiment")
    return main(asked(folder)), folder / "out"


def page_of(out):
    return (out / "tying.md").read_text()


def rows_of(out, section):
    """The rows of a section's tables, by their cells."""
    lines = page_of(out).partition(f"## {section}\n")[2].partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def ends_of(out, name, key="loss"):
    """The last evaluation of each of a variant's runs, by the logs."""
    found = []
    for seed in range(SEEDS):
        log = out / "bpe-280" / f"{name.replace(', ', '-')}-{seed}" / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found.append([line[key] for line in lines if line["kind"] == "evaluated"][-1])
    return found


def test_it_leaves_a_page_and_its_picture(made):
    code, out = made
    assert code == 0
    assert page_of(out).startswith("# What does tying do?\n")
    assert "](tying.svg)" in page_of(out)
    assert "## Limits" in page_of(out)
    assert (out / "tying.svg").read_text().lstrip().startswith("<?xml")


def test_sizes_are_the_ledgers_and_equal_where_they_should_be(made):
    sizes = {row[1]: row for row in rows_of(made[1], "Sizes and settings") if len(row) == 9}
    counts = {name: int(sizes[name][3].replace(",", "")) for name in VARIANTS}
    flops = {name: int(sizes[name][4].replace(",", "")) for name in VARIANTS}
    steps = {name: int(sizes[name][5].replace(",", "")) for name in VARIANTS}
    config = {
        "model_type": "llama", "vocab_size": 280, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2,
    }  # fmt: skip
    assert counts["tied"] == tallystick.count(config, tie_word_embeddings=True).total
    assert counts["untied"] == tallystick.count(config).total == counts["tied"] + 280 * 32
    assert counts["untied, smaller"] == pytest.approx(counts["tied"], rel=0.01)
    assert steps["tied"] == steps["untied"] == steps["untied, smaller"] == STEPS
    assert flops["tied"] == flops["untied"]  # a lookup costs none
    longer = "untied, smaller, longer"
    assert abs(steps[longer] * flops[longer] - STEPS * flops["tied"]) <= flops[longer] / 2


def test_differences_are_those_of_the_logs(made):
    (row,) = (row for row in rows_of(made[1], "Result") if row[1] == "280")
    tied = ends_of(made[1], "tied")
    for cell, name in zip(row[2:], VARIANTS[1:], strict=True):
        one, other = (mine - base for mine, base in zip(ends_of(made[1], name), tied, strict=True))
        mean, half = (one + other) / 2, 12.706 * abs(one - other) / sqrt(2) / sqrt(2)
        assert cell.startswith(f"{mean:+.4f} ± {half:.4f} **")
        assert cell.endswith({True: "no clear difference**", False: "**"}[abs(mean) <= half])


def test_neighbourhoods_are_those_of_the_saved_matrices(made):
    rows = {row[0]: row[1] for row in rows_of(made[1], "Neighbourhoods") if len(row) == 2}
    mean = sum(ends_of(made[1], "untied", "agreement")) / SEEDS
    assert rows["untied embedding, untied head"].startswith(f"{mean:.3f} ")
    assert set(ends_of(made[1], "tied", "agreement")) == {1.0}


def test_the_page_names_the_command_that_made_it(made):
    (said,) = re.findall(r"`(tallystick experiment [^`]*)`", page_of(made[1]))
    assert shlex.split(said)[1:] == [word for word in asked(made[1].parent) if word not in ("--out", str(made[1]))]


def test_the_search_has_a_seed_of_its_own(made):
    searched = [path.name for path in (made[1] / "bpe-280" / "search").iterdir()]
    assert {re.search(r"-(\d+)-[+-]\d[+-]\d$", name)[1] for name in searched} == {str(SEEDS)}


def test_what_is_done_is_not_done_again(made, capsys):
    before = {path: path.stat().st_mtime_ns for path in made[1].glob("bpe-280/*/checkpoints/*")}
    assert before
    page = page_of(made[1])
    (made[1] / "tying.md").unlink()
    capsys.readouterr()
    assert main(asked(made[1].parent)) == 0
    assert page_of(made[1]) == page
    assert {path: path.stat().st_mtime_ns for path in made[1].glob("bpe-280/*/checkpoints/*")} == before
    assert main(asked(made[1].parent, "batch=8")) == 2
    assert "is from a run with batch = 4, but this run has 8" in capsys.readouterr().err


def test_an_experiment_that_is_stopped_goes_on_to_the_same_page(made, tmp_path, monkeypatch, capsys):
    step = Run._step

    def asked_to_stop(run):
        if run.progress.step == 1 and Path(run.config.out).name == "untied-0":
            os.kill(os.getpid(), signal.SIGINT)
        return step(run)

    monkeypatch.setattr(Run, "_step", asked_to_stop)
    assert main(asked(tmp_path)) == 0
    assert "stopped, and saved: the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "out" / "tying.md").exists()
    monkeypatch.undo()
    monkeypatch.setattr(searching, "MOST", 0)
    assert main(asked(tmp_path)) == 0
    assert (tmp_path / "out" / "tying.svg").read_bytes() == (made[1] / "tying.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "0"], "--seeds is 0, expected 1 or more"),
        (["--set", "source=gpt2"], "gpt2 has no key 'intermediate_size' to set"),
        (["--set", "sequence=65"], "sequence 65 is longer than the 64 positions of the model"),
        (
            ["--quick", "--steps", "1", "--set", "sequence=4", "tokenizer=bytes", "batch=1"],
            "are read 20 times in 1 steps",
        ),
    ],
)
def test_bad_input_is_one_line_before_a_step(tmp_path, capsys, options, message):
    assert main(["experiment", "tying", "--out", str(tmp_path), "--set", f"data={text_in(tmp_path)}", *options]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_it_trains_on_one_thread_whatever_torch_is_set_to(tmp_path, monkeypatch):
    seen = []

    def compared(*_):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr(train_all, "_compared", compared)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        main(asked(tmp_path))
        seen.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 3]


def test_the_differences_of_a_vocabulary_are_drawn_side_by_side_around_its_share(monkeypatch):
    figures = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: figures.append(figure))
    shares = (0.2, 0.6)
    drawn(Experiment(tuple(compared(share) for share in shares), TrainConfig(), seeds=1))
    (panel,) = (one for one in figures[0].axes if one.get_title() == "Above 0 the tied decoder is better")
    points = [bars.lines[0] for bars in panel.containers]
    assert [[*one.get_ydata()] for one in points] == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    for share, places in zip(shares, zip(*(one.get_xdata() for one in points), strict=True), strict=True):
        assert len({*places}) == len(VARIANTS) - 1
        assert sum(places) / len(places) == pytest.approx(100 * share)


def compared(share):
    """Results of one vocabulary: each variant's loss is 1 nat more than the previous one's."""
    variants = [
        Variant(
            name, 8, 8, parameters=100, flops=1, steps=1, learning_rate=0.1, init_std=0.1, trials=(),
            runs=((Moment(1, loss, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),),),
        )
        for loss, name in enumerate(VARIANTS)
    ]  # fmt: skip
    return Comparison(
        "bytes", 256, share, (*variants,), compared=9, chance=0.1, agreements={"tied, untied": (0.5,)}, pairs=0, near={}
    )


def test_a_picture_that_cannot_be_drawn_is_said_before_a_step(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(asked(tmp_path)) == 2
    assert "pip install 'tallystick[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# -- the search -----------------------------------------------------------------------------------


def bowl(rate, std, tilt=0.0):
    """Losses with one lowest setting; with a tilt the best deviation depends on the rate."""

    def trial(at):
        high, wide = at.rate - rate, at.std - std
        return Trial(float(at.rate), float(at.std), high**2 + wide**2 + tilt * high * wide)

    return trial


@pytest.mark.parametrize("lowest", [(0, 0), (2, 1), (-3, 2), (1, -2)])
@pytest.mark.parametrize("tilt", [0.0, 0.5])
def test_the_search_ends_where_every_neighbour_is_worse(lowest, tilt, monkeypatch):
    monkeypatch.setattr(searching, "MOST", 4)
    best, trials = search(bowl(*lowest, tilt), Setting(1, 1))
    assert best == Setting(*lowest)
    assert (trials[0].learning_rate, trials[0].init_std) == (0, 0)  # the base setting, which all variants share
    tried = [(trial.learning_rate, trial.init_std) for trial in trials]
    assert len(tried) == len(set(tried))
    assert {(lowest[0] + by, lowest[1]) for by in (1, -1)} <= set(tried)
    assert {(lowest[0], lowest[1] + by) for by in (1, -1)} <= set(tried)


def test_the_search_leaves_what_diverged(monkeypatch):
    monkeypatch.setattr(searching, "MOST", 4)
    best, _ = search(lambda at: Trial(at.rate, at.std, inf if at.rate > 0 else at.std**2 - at.rate), Setting(1, 1))
    assert best == Setting(0, 0)
    with pytest.raises(BadInput, match="every run of the search diverged: set a lower learning_rate"):
        search(lambda at: Trial(at.rate, at.std, inf), Setting(1, 1))


# -- intervals, neighbourhoods, gradients ---------------------------------------------------------


def test_the_interval_is_students():
    """By the table: t of 2 degrees of freedom is 4.303."""
    mean = Mean.of([1.0, 2.0, 3.0])
    assert (mean.value, round(mean.half, 3)) == (2.0, round(4.303 / sqrt(3), 3))
    assert isinf(Mean.of([1.0]).half)
    assert [verdict(Mean(*one)) for one in ((0.2, 0.1), (-0.2, 0.1), (0.1, 0.2))] == [
        "tied better", "tied worse", "no clear difference",
    ]  # fmt: skip


def test_neighbourhoods_survive_a_turn_and_a_shift_where_cosines_of_rows_do_not():
    chance = torch.Generator().manual_seed(0)
    rows = torch.randn(60, 8, generator=chance)
    turn, _ = torch.linalg.qr(torch.randn(8, 8, generator=chance))
    moved = 3 * rows @ turn + 5
    assert agreement(nearest(rows), nearest(moved)) == 1
    assert torch.nn.functional.cosine_similarity(rows, moved - 5).abs().mean() < 0.6
    other = torch.randn(60, 8, generator=chance)
    assert agreement(nearest(rows), nearest(other)) == pytest.approx(10 / 59, abs=0.05)


def test_pairs_differ_in_case_or_space_alone():
    tokenizer = Tokenizer.bytes()
    ids = [ord(letter) for letter in "aAb1 "]
    assert alike(tokenizer, ids) == [(0, 1), (1, 0)]
    assert near(torch.tensor([[1, 4], [2, 3], [0, 3]]), [(0, 1), (1, 0), (2, 1), (2, 0)]) == 0.5


@pytest.mark.parametrize("scale", [{}, {"model_type": "gemma", "head_dim": 4}])
def test_the_two_gradients_add_up_to_the_tied_matrixs(scale):
    config = {
        "model_type": "llama", "vocab_size": 50, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": True, **scale,
    }  # fmt: skip
    torch.manual_seed(0)
    decoder = Decoder.of(config).double()
    tokens = torch.randint(20, (2, 6))
    found = uses(decoder, tokens, tokens.roll(-1, 1))
    assert decoder.embedding.weight.grad is None
    untied = Decoder.of({**config, "tie_word_embeddings": False}).double()
    untied.load_state_dict(decoder.state_dict())
    untied(tokens, tokens.roll(-1, 1)).backward()
    bottom, top = untied.embedding.weight.grad, untied.head.weight.grad
    assert (found.embedding, found.head) == pytest.approx((bottom.norm().item(), top.norm().item()))
    assert found.rows == pytest.approx(len(tokens.unique()) / 50)
    decoder(tokens, tokens.roll(-1, 1)).backward()
    torch.testing.assert_close(decoder.embedding.weight.grad, bottom + top)
