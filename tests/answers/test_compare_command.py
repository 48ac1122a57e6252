"""`tallystick compare`: the first line, exit codes, and what each format holds."""

from __future__ import annotations

import csv
import io
import json

import pytest

import tallystick
from checkpoints import write
from tallystick.cli.main import main


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(["compare", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_first_line_is_the_answer(run):
    code, out, err = run("gpt2", "gpt2", "--set-b", "tie_word_embeddings=false")
    first, blank, cause, *_ = out.splitlines()
    assert first == (
        "B (gpt2) has 38,597,376 more parameters than A (gpt2) (163,037,184 vs. 124,439,808): "
        "lm_head.weight is no longer tied to transformer.wte.weight"
    )
    assert blank == ""
    assert cause == "  lm_head.weight is no longer tied to transformer.wte.weight: +38,597,376 (tie_word_embeddings)"
    assert (code, err) == (0, "")


def test_the_exit_code_is_1_only_when_asked_and_different(run):
    assert run("gpt2", "gpt2-medium")[0] == 0
    assert run("gpt2", "gpt2-medium", "--exit-code")[0] == 1
    assert run("gpt2", "gpt2", "--exit-code")[0] == 0
    assert run("gpt2", "gpt2", "--exit-code", "--set", "n_layer=2")[0] == 0
    assert run("gpt2", "gpt2", "--exit-code", "--set", "n_layer=2", "--set-a", "n_layer=3")[0] == 1
    assert run("gpt2", "gpt2", "--exit-code", "--set-b", "dtype=bfloat16")[0] == 0


def test_json_has_the_keys_that_are_promised(run):
    _, out, _ = run("gpt2", "llama-2-7b", "--format", "json")
    answer = json.loads(out)
    assert answer == tallystick.compare("gpt2", "llama-2-7b").to_dict()
    assert answer["gap"] == 6_738_415_616 - 124_439_808 == sum(cause["parameters"] for cause in answer["causes"])
    assert {"cause", "what", "parameters", "names"} <= answer["causes"][0].keys()
    assert sum(row["parameters"] for row in answer["tensors"]) == answer["gap"]
    sizes = [abs(cause["parameters"]) for cause in answer["causes"] if not cause["cause"].startswith("tie")]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("more", [(), ("--tensors",)])
def test_csv_adds_up(run, more):
    _, out, _ = run("gpt2", "gpt2-xl", "--format", "csv", *more)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(int(row["parameters"]) for row in rows) == 1_557_611_200 - 124_439_808


def test_tensors_are_listed_on_demand(run):
    for style in ("table", "markdown"):
        _, out, _ = run("gpt2", "gpt2", "--set-b", "n_positions=2048", "--tensors", "--format", style)
        [line] = [line for line in out.splitlines() if "1024 × 768" in line]
        assert "transformer.wpe.weight" in line
        assert "2048 × 768" in line
        assert "+786,432" in line


def test_bad_input_is_one_line(run, tmp_path):
    write(tmp_path / "image.safetensors", {"conv1.weight": (8, 3, 3, 3), "bn1.weight": (8,)})
    for arguments in (
        ("gpt2", "gpt3"),
        ("gpt2", str(tmp_path / "image.safetensors")),
        ("gpt2", "gpt2", "--set-b", "n_embd=7"),
        ("gpt2",),
    ):
        code, out, err = run(*arguments)
        assert code == 2
        assert out == ""
        assert err.startswith("tallystick: ")
        assert err.count("\n") == 1
