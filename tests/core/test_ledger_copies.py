"""Ledgers that are pickled, copied and compared, whatever they were read from."""

import copy
import json
import pickle
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import tallystick

CONFIGS = ["gpt2", "mixtral-8x7b", "deepseek-v3", "bare-bones-lm"]


class Tied(nn.Module):
    """An embedding, and a head that is the same parameter."""

    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(11, 4)
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.wte.weight


def pickled(ledger):
    return pickle.loads(pickle.dumps(ledger))


COPIES = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])


def same(ledger, other):
    assert other == ledger
    assert hash(other) == hash(ledger)
    assert other.to_dict("tensor") == ledger.to_dict("tensor")
    assert [repr(entry.shape) for entry in other.rolled] == [repr(entry.shape) for entry in ledger.rolled]


@COPIES
@pytest.mark.parametrize("preset", CONFIGS)
def test_a_preset(preset, copied):
    ledger = tallystick.count(preset)
    other = copied(ledger)
    same(ledger, other)
    assert str(tallystick.formula(other).expression) == str(tallystick.formula(ledger).expression)
    assert tallystick.memory(other).to_dict() == tallystick.memory(ledger).to_dict()
    assert tallystick.compare(other, tallystick.count("gpt2")).to_dict() == (
        tallystick.compare(ledger, tallystick.count("gpt2")).to_dict()
    )


def test_a_class_beside_the_language_model():
    ledger = tallystick.count({"model_type": "bert", "architectures": ["BertForTokenClassification"], "num_labels": 7})
    same(ledger, pickled(ledger))


@COPIES
def test_a_live_module(copied):
    model = Tied()
    ledger = tallystick.count(model)
    same(ledger, copied(ledger))


@COPIES
def test_what_a_factory_builds(copied):
    ledger = tallystick.count(f"{__name__}:Tied")
    same(ledger, copied(ledger))


def test_a_copy_of_a_live_modules_ledger_reads_the_same_tensors_and_a_pickled_one_cannot():
    model = Tied()
    model.head.weight = nn.Parameter(model.wte.weight.detach().clone())
    ledger = tallystick.count(model)
    read = tallystick.ties(ledger).to_dict()
    assert tallystick.ties(copy.deepcopy(ledger)).to_dict() == read
    assert [group.relation for group in tallystick.ties(pickled(ledger)).groups] == ["unknown"]


@COPIES
def test_a_folder_reads_its_values_again(tmp_path, copied):
    weight = torch.arange(44.0).reshape(11, 4)
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gpt2", "n_layer": 0, "n_embd": 4, "n_head": 2, "vocab_size": 11, "n_positions": 3})
    )
    tensors = {"wte.weight": weight, "wpe.weight": weight[:3], "ln_f.weight": weight[0], "ln_f.bias": weight[1]}
    save_file(
        {
            **{f"transformer.{name}": tensor.clone() for name, tensor in tensors.items()},
            "lm_head.weight": weight.clone(),
        },
        tmp_path / "model.safetensors",
    )
    ledger = tallystick.count(str(tmp_path))
    other = copied(ledger)
    same(ledger, other)
    assert tallystick.ties(other).to_dict() == tallystick.ties(ledger).to_dict()


def test_a_folder_is_described_as_its_config_is(tmp_path):
    """Heads, sizes and what runs are those of the config, whatever the model was read from."""
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 11, "n_positions": 3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    alone = tallystick.count(config)
    save_file(
        {entry.name: torch.zeros(entry.shape) for entry in alone.entries if entry.unique},
        tmp_path / "model.safetensors",
    )
    ledger = tallystick.count(str(tmp_path))
    assert ledger.kind == "safetensors"
    assert ledger.model == ledger.described.model == alone.model
    assert pickled(ledger).model == alone.model
    assert alone.as_described is alone
    assert ledger.as_described is ledger.described


def test_another_process_reads_it(tmp_path):
    (tmp_path / "ledger").write_bytes(pickle.dumps(tallystick.count("gpt2")))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).total, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ledger")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["124439808", "False"]


def test_what_differs_is_not_equal():
    ledgers = [
        tallystick.count("gpt2"),
        tallystick.count("gpt2", n_layer=11),
        tallystick.count("gpt2", dtype="bfloat16"),
        tallystick.count("gpt2", tie_word_embeddings=False),
        tallystick.count("gpt2-medium"),
        124439808,
    ]
    for place, one in enumerate(ledgers):
        assert [one == other for other in ledgers] == [place == number for number in range(len(ledgers))]
    assert tallystick.count("gpt2") == tallystick.count("gpt2")


@COPIES
def test_an_entry(copied):
    for entry in tallystick.count("mixtral-8x7b").rolled:
        other = copied(entry)
        assert other == entry
        assert repr(other) == repr(entry)
