"""The module tree: adjacent equal layers are one line, with the numbers of a real model."""

import pytest

import tallystick
from tallystick.cli.main import main
from tallystick.core.entries import Axis, Entry
from tallystick.core.module_tree import module_rows, runs_of_layers


def entry(name, size, *axes, storage=None):
    return Entry(name, (size,), "other", "float32", storage or name, 0 if storage else size, axes=axes)


@pytest.mark.parametrize(
    "config", [{"model_type": "gpt2", "n_layer": 3}, {"model_type": "mixtral", "num_hidden_layers": 2}]
)
def test_each_module_has_what_the_real_one_has(config):
    """Truth: transformers' modules on the meta device, by name."""
    torch = pytest.importorskip("torch")
    from transformers import AutoConfig, AutoModelForCausalLM

    ledger = tallystick.count(config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    modules = dict(model.named_modules())
    checked = 0
    for row in ledger.rows("module"):
        path = (
            row["module"].replace(f"0-{row['run'] - 1}", "0").replace("h.0-2", "h.0").replace("layers.0-1", "layers.0")
        )
        if path in modules and not row["shares_with"]:
            assert row["of_one"] == sum(one.numel() for one in modules[path].parameters()), path
            checked += 1
    assert checked > 10


def test_runs_of_different_layers_are_apart():
    entries = [
        entry("layers.{}.norm.weight", 4, Axis(0, 6)),
        entry("layers.{}.mlp.weight", 8, Axis(0, 2)),
        entry("layers.{}.experts.{}.weight", 3, Axis(2, 4), Axis(0, 16)),
    ]
    rows = {
        row["module"]: (row["run"], row["copies"], row["of_one"], row["parameters"]) for row in module_rows(entries)
    }
    assert rows == {
        "layers.0-1": (2, 2, 12, 24),
        "layers.0-1.norm": (1, 2, 4, 8),
        "layers.0-1.mlp": (1, 2, 8, 16),
        "layers.2-5": (4, 4, 52, 208),
        "layers.2-5.norm": (1, 4, 4, 16),
        "layers.2-5.experts.0-15": (16, 64, 3, 192),
    }
    assert list(runs_of_layers(entries)) == [("layers.0-1", 2, 12), ("layers.2-5", 4, 52)]


def test_single_layers_that_are_equal_are_folded():
    entries = [entry(f"h.{number}.w.weight", 5 if number < 3 else 7) for number in range(5)]
    assert [row["module"] for row in module_rows(entries, 1)] == ["h.0-2", "h.3-4"]


def test_a_tensor_outside_of_modules_is_a_line_and_a_tied_module_names_its_tensor():
    rows = module_rows([entry("scale", 2), entry("wte.weight", 6), entry("head.weight", 6, storage="wte.weight")])
    assert {row["module"]: (row["parameters"], row["shares_with"]) for row in rows} == {
        "scale": (2, None),
        "wte": (6, None),
        "head": (0, "wte.weight"),
    }


@pytest.mark.parametrize("name", ["gpt2", "deepseek-v3", "llama-3-8b", "qwen3-30b-a3b", "gemma-2-2b"])
def test_the_top_modules_sum_to_the_count(name):
    ledger = tallystick.count(name)
    assert sum(row["parameters"] for row in ledger.rows("module", 1)) == ledger.total


def test_the_tree_in_text(capsys):
    assert main(["count", "gpt2", "--depth", "2"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["├", "h.0–11", "×12", "7,087,872", "85,054,464", "68.3%"] in lines
    assert ["└", "ln_f", "1,536", "0.0%"] in lines
    assert not any("attn" in line for line in lines)


@pytest.mark.parametrize("words", [["--depth", "0"], ["--depth", "2", "--by", "role"]])
def test_a_depth_is_of_the_tree(capsys, words):
    assert main(["count", "gpt2", *words]) == 2
    assert "--depth is a number of levels" in capsys.readouterr().err


def test_a_million_layers_are_one_line():
    ledger = tallystick.count("gpt2", n_layer=10**6)
    assert [row["run"] for row in ledger.rows("module", 2)].count(10**6) == 1
