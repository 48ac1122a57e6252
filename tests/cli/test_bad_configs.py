"""What bad values of a config get, and types that nobody knows: one line, exit code 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config

import tallystick
from refusals import Refused, refused, says_so
from tallystick import BadInput
from tallystick.sources.transformers_meta import fallback

__all__ = ["refused"]  # a fixture


# -- values of a config ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("768", "the string '768'"),
        ("x" * 5000, "the string 'xxx"),
        ("a\nb", r"the string 'a\nb'"),
        (-1, "-1"),
        (0, "0"),
        (768.0, "768.0"),
        (True, "True"),
        (False, "False"),
        (None, "None"),
        (10**30, "1000000000000000000000000000000"),
        (2**63, "9223372036854775808"),
        (10**4000, "an integer of 13288 bits"),
        ([], "the list []"),
        ([768], "the list [768]"),
        ({"a": 1}, "the object {'a': 1}"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
    ids=lambda value: ascii(str(value)[:12]),
)
def test_sizes_that_are_none(refused: Refused, value: Any, shown: str):
    for config, key in [({"model_type": "llama"}, "hidden_size"), ({"model_type": "gpt2"}, "n_embd")]:
        Path("config.json").write_text(json.dumps({**config, key: value}))
        line = refused("count", "config.json")
        assert line.startswith(f"config.json: {key} is {shown}")
        assert "expected a positive integer" in line
        says_so(line, "config.json")
        says_so(line.replace("config.json", "the dictionary"), {**config, key: value})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "gpt2", "n_head": 5}, ["n_embd", "768", "n_head", "5"]),
        ({"model_type": "gpt_neox", "num_attention_heads": 5}, ["hidden_size", "6144", "num_attention_heads", "5"]),
        ({"model_type": "gpt2", "n_layer": -1}, ["n_layer", "-1"]),
        ({"model_type": "gpt2", "tie_word_embeddings": "yes"}, ["tie_word_embeddings", "'yes'", "true or false"]),
        ({"model_type": "gpt2", "tie_word_embeddings": 1}, ["tie_word_embeddings is 1", "true or false"]),
        ({"model_type": "gpt2", "dtype": "float33"}, ["float33", "nearest: float32"]),
        ({"model_type": "gpt2", "torch_dtype": 32}, ["dtype", "32"]),
        ({"model_type": "gpt2", "hidden_size": "x"}, ["hidden_size", "'x'"]),
        (
            {"model_type": "gpt2", "attn_pdrop": 10**400},
            ["attn_pdrop is an integer of 1329 bits", "a number of 0 or more"],
        ),
        ({"model_type": "glm", "partial_rotary_factor": 1e308}, ["partial_rotary_factor is 1e+308", "from 0 to 1"]),
        ({"model_type": "glm", "rope_parameters": {"partial_rotary_factor": float("nan")}}, ["is nan", "from 0 to 1"]),
        ({"model_type": "gpt_neox", "rotary_pct": 2}, ["rotary_pct is 2.0, expected a number from 0 to 1"]),
        (
            {"model_type": "lfm2", "block_ffn_dim_multiplier": 1e308},
            ["block_ffn_dim_multiplier is 1e+308, which gives an impossible width (8192 times it)"],
        ),
        (
            {"model_type": "xlstm", "ffn_proj_factor": 1e308},
            ["ffn_proj_factor is 1e+308, which gives an impossible width (4096 times it)"],
        ),
        (
            {"model_type": "llama4_text", "moe_layers": [[1]]},
            ["moe_layers is the list [[1]], expected a list of layers"],
        ),
        (
            {"model_type": "llama4_text", "moe_layers": "N" * 5000},
            ["moe_layers is the string 'NNN", "a list of layers"],
        ),
        (
            {"model_type": "bailing_hybrid", "num_hidden_layers": 2001},
            ["num_hidden_layers is 2001: with several kinds of layers at most 2,000 are counted"],
        ),
        (
            {"model_type": "cohere2_moe", "first_k_dense_replace": 2**31, "layer_types": ["full_attention"]},
            ["layer_types must list the kind of each of the"],
        ),
        ({"emb_dim": 768, "n_heads": 12}, ["missing"]),
        (
            {"emb_dim": 768, "n_heads": 7, "n_layers": 1, "context_length": 4, "vocab_size": 9},
            ["768", "7", "divisible"],
        ),
    ],
    ids=str,
)
def test_values_that_make_no_sense(refused: Refused, values: dict[str, Any], words: list[str]):
    Path("config.json").write_text(json.dumps(values))
    line = refused("count", "config.json")
    assert line.startswith("config.json: ")
    assert all(word in line for word in words), line
    says_so(line.replace("config.json", "the dictionary", 1), values)


def test_lists_for_thousands_of_layers():
    """Each could be of another kind, with a block of its own."""
    kinds = ["sliding_attention", "full_attention"] * 1500
    with pytest.raises(BadInput, match="layer_types lists 3,000 values, more than the 2,000 allowed"):
        tallystick.count({"model_type": "gemma3_text", "num_hidden_layers": 3000, "layer_types": kinds})


@pytest.mark.parametrize(
    "source", [None, 1, 1.5, True, [], ("gpt2",), {"gpt2"}, b"gpt2", object, print, [1] * 5000, GPT2Config], ids=ascii
)
def test_objects_that_are_no_source(source: Any):
    with pytest.raises(
        BadInput, match=r"^count\(\): cannot count .*: expected a name, a path, a dictionary, a config or an nn.Mod"
    ):
        tallystick.count(source)


@pytest.mark.parametrize("value", [torch.tensor(768.0), torch.zeros(2, 2), 768j], ids=str)
def test_sizes_that_other_libraries_make(value: Any):
    with pytest.raises(
        BadInput, match=r"^count\(\): the dictionary: n_embd is .*, expected a positive integer$"
    ) as error:
        tallystick.count({"model_type": "gpt2", "n_embd": value})
    assert str(error.value).isprintable()


def test_keys_that_are_no_words():
    with pytest.raises(BadInput, match=r"^count\(\): the dictionary has no key 'n_layers' to set; nearest: n_layer"):
        tallystick.count({"model_type": "gpt2", 5: 1, None: 2}, n_layers=1)


@pytest.mark.parametrize("source", [{}, {1: 2}, {None: None}, {"model_type": None}, {"model_type": ["gpt2"]}], ids=str)
def test_dictionaries_that_are_no_config(source: Any):
    with pytest.raises(BadInput) as error:
        tallystick.count(source)
    assert error.value.line.startswith("the dictionary")


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("n_layers=2", "gpt2 has no key 'n_layers' to set; nearest: n_layer"),
        ("zzz=2", "gpt2 has no key 'zzz' to set"),
        ("n_layer", "--set: 'n_layer' is not KEY=VALUE"),
        ("=2", "--set: '=2' is not KEY=VALUE"),
        ("", "--set: '' is not KEY=VALUE"),
        ("n_layer=", "gpt2: n_layer is the string ''"),
        ("n_layer=two", "gpt2: n_layer is the string 'two'"),
        ("n_layer=-2", "gpt2: n_layer is -2"),
        ("n_layer=2.0", "gpt2: n_layer is 2.0"),
        ("n_layer=true", "gpt2: n_layer is True"),
        ("n_layer=null", "gpt2: n_layer is None"),
        ("n_layer=[2]", "gpt2: n_layer is the list [2]"),
        ("n_layer=" + "9" * 5000, "gpt2: n_layer is the string '999"),
        ("n_layer=" + "[" * 100_000, "gpt2: n_layer is the string '[[["),
        ("n_layer=1000000000000000000000000000000", "gpt2: n_layer is 1000000000000000000000000000000"),
        ("n_head=7", "n_embd = 768 is not divisible by n_head = 7"),
        ("tie_word_embeddings=no", "gpt2: tie_word_embeddings is the string 'no', expected true or false"),
        ("model_type=gpt3", "gpt3"),
        ("N" * 5000 + "=1", "NNN"),
        ("a\nb=1", r"'a\nb'"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_settings_that_make_no_sense(refused: Refused, setting: str, words: str):
    assert words in refused("count", "gpt2", "--set", setting)
    assert words in refused("formula", "gpt2", "--set", setting)


def test_a_breakdown_that_nobody_could_read(refused: Refused):
    line = refused("count", "gpt2", "--set", "n_layer=1000000000000", "--by", "tensor")
    assert line == "gpt2 has more than 20,000,000 tensors, too many to list individually"


# -- model types that are not known natively ------------------------------------------------------


@pytest.mark.usefixtures("preloaded")
def test_a_model_type_that_nobody_knows(refused: Refused):
    Path("config.json").write_text('{"model_type": "mistrl"}')
    line = refused("count", "config.json")
    assert "neither tallystick nor transformers" in line
    assert "'mistrl'" in line
    assert "mistral" in line.partition("nearest: ")[2].split(", ")


def test_a_model_type_without_transformers(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    Path("config.json").write_text('{"model_type": "openai-gpt2"}')
    line = refused("count", "config.json")
    assert "'openai-gpt2' is not known natively; nearest: " in line
    assert "gpt2" in line.partition("nearest: ")[2].partition(";")[0].split(", ")
    assert "pip install 'tallystick[hf]'" in line


def test_a_setting_that_transformers_would_not_read(refused: Refused):
    Path("config.json").write_text('{"model_type": "mt5"}')
    line = refused("count", "config.json", "--set", "num_layer=2")
    assert line.startswith("config.json has no key 'num_layer' to set; nearest: num_layers")


def test_many_keys_that_look_misspelt(refused: Refused):
    Path("config.json").write_text(json.dumps({f"{number}n_embd": 1 for number in range(10_000)}))
    assert refused("count", "config.json").count("nearest") == 3


def test_a_config_that_transformers_refuses(refused: Refused):
    Path("config.json").write_text('{"model_type": "mt5", "d_model": "wide"}')
    assert "config.json: transformers cannot build it: " in refused("count", "config.json")


def test_a_config_of_which_transformers_would_build_without_end(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fallback, "MOST_BUILT", 1000)
    for config, words in (
        ({"model_type": "switch_transformers", "num_experts": 10**9}, "more than 1,000 modules and parameters"),
        ({"model_type": "mt5", "num_layers": 1001}, "num_layers is 1001, too many for transformers"),
    ):
        Path("config.json").write_text(json.dumps(config))
        assert words in refused("count", "config.json")
    monkeypatch.undo()
    assert tallystick.count({"model_type": "mt5", "num_layers": 1, "vocab_size": 10}).total


@pytest.mark.parametrize(
    "model_type",
    ["../gpt2", "gpt2.py", "kit", "aliases", "teaching", "_decoder", "__init__", "os", "a\nb", "N" * 5000, "é"],
    ids=ascii,
)
def test_a_model_type_is_no_path(refused: Refused, model_type: str):
    Path("config.json").write_text(json.dumps({"model_type": model_type}))
    refused("count", "config.json")
