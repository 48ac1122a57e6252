"""The experiment: the same text for all, as many parameters where it says so, a page that says what came out."""

import json

import pytest

import tallystick
from tallystick.cli.main import main
from training import text_in


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of it too short to show anything."""
    folder = tmp_path_factory.mktemp("experiment")
    model = [
        "hidden_size=32",
        "intermediate_size=40",
        "num_hidden_layers=1",
        "num_attention_heads=2",
        "num_key_value_heads=2",
    ]
    settings = ["tokenizer=bpe:280", "sequence=16", "batch=4", "eval_batches=2", f"data={text_in(folder)}"]
    told = ["--set", *settings, *(f"model.{key}" for key in model)]
    code = main(["experiment", "tying", "--steps", "4", "--seeds", "2", "--out", str(folder / "out"), *told])
    return code, folder / "out"


def test_it_leaves_a_page_and_its_picture(made):
    code, out = made
    assert code == 0
    text = (out / "tying.md").read_text()
    assert "| tied | 32 |" in text
    assert (out / "tying.svg").read_text().lstrip().startswith("<?xml")
    assert "](tying.svg)" in text
    assert "What it cannot show" in text


def test_the_parameters_are_those_of_the_ledger_and_nearly_equal_where_they_should_be(made):
    rows = {
        cells[1].strip(): cells
        for cells in (line.split("|") for line in (made[1] / "tying.md").read_text().splitlines())
        if len(cells) > 6
    }
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


def test_all_runs_read_the_same_tokens(made):
    logs = sorted(path.name for path in made[1].iterdir())
    assert [name for name in logs if name.endswith(("-0", "-1"))] == [
        "tied-0", "tied-1", "untied-0", "untied-1", "untied-narrower-0", "untied-narrower-1",
    ]  # fmt: skip
    assert not list(made[1].glob("*/data"))


def test_no_seed_is_no_experiment(capsys):
    assert main(["experiment", "tying", "--seeds", "0"]) == 2
    assert "--seeds is 0" in capsys.readouterr().err
