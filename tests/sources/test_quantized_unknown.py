"""A quantisation that a config states oddly or not at all: said, and counted in the dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import packings
from hostile import survives
from quantized_configs import LLAMA, TILES, compressed, quantised


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"quant_method": "aqlm"}, "'aqlm'"),
        ({"quant_method": "quark"}, "'quark'"),
        ({"quant_method": "gptq"}, "bits is None"),
        ({"quant_method": "gptq", "bits": 40}, "bits is 40"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "marlin"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "gemv"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        ({**TILES, "weight_block_size": "128"}, "block size"),
        ({**TILES, "weight_block_size": [0, 128]}, "block size"),
        (compressed("marlin-24"), "marlin-24"),
        ({"quant_method": "compressed-tensors"}, "weights"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "W4A8_AWQ"),
        ({"quant_method": "torchao", "quant_type": "fpx"}, "fpx"),
        ({"bits": 4}, "unknown without the weights"),
    ],
)
def test_what_is_not_stated_is_said_and_counted_in_the_dtype(told: dict[str, Any], words: str):
    ledger = quantised(told)
    assert ledger.totals["bytes"] == 2 * packings.OWN
    assert ledger.stored is None
    (note,) = [note for note in ledger.notes if "quantised" in note]
    assert words in note
    assert "counted in bfloat16" in note


HOSTILE: list[Any] = [
    {**compressed("pack-quantized"), "ignore": ["re:(a+)+$", "re:(", "re:.*.*.*.*.*x", 7, None, "a" * 10_000]},
    {"quant_method": "fp8", "modules_to_not_convert": "lm_head", "weight_block_size": [128, 128]},
    {"quant_method": "fp8", "modules_to_not_convert": {"a": 1}, "weight_block_size": [1 << 60, 1]},
    {"quant_method": ["fp8"]},
    {"quant_method": "gptq", "bits": 4, "dynamic": {"-:[": {}, "+:x": {"bits": None}}},
    {"quant_method": "gptq", "bits": True, "group_size": -7},
    {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": "4", "type": 3}}}},
    {"quant_method": "modelopt", "quant_algo": {}, "quantized_layers": {"x": []}},
    {"quant_method": "torchao", "quant_type": {"default": []}},
    {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": [4]}}},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": ["nf4"]},
    {"quant_method": "quanto", "weights": ["int4"]},
    "fp8",
    ["fp8"],
]


@pytest.mark.parametrize("told", HOSTILE)
def test_an_odd_quantisation_changes_no_count(told: Any):
    assert quantised(told).total == packings.OWN


def test_an_odd_quantisation_in_a_file(tmp_path: Path):
    configs = [json.dumps({**LLAMA, "quantization_config": told}).encode() for told in HOSTILE]
    assert survives(tmp_path / "config.json", configs, read=None) == 0
