"""Which modules a config quantises: what it leaves out, its groups and its patterns."""

from __future__ import annotations

from typing import Any

import pytest

import packings
from quantized_configs import FLOAT, GROUP, MOE, TILES, compressed, quantised
from tallystick import count
from tallystick.core import budget
from tallystick.errors import BadInput
from tallystick.sources.quantized.excluded_modules import Patterns


def packed_in(ledger: Any) -> set[str]:
    return {entry.name for entry in ledger.entries if entry.packed is not None and not entry.buffer}


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        (["re:.*self_attn.*"], 2 * 4),
        ([r"re:.*mlp\.(gate|up)_proj$"], 2 * 2),
        ([r"re:.*layers\.1\..*"], 7),
        (["model.layers.0.self_attn.q_proj"], 1),
        (["model.layers.0.self_attn"], 4),
        (["model.language_model.layers.1.mlp*"], 3),  # as a model that also sees is written
        (["*down_proj"], 2),
        (["model.layers.0.self_attn.q"], 0),  # the start of a name is not the module
        ([], 0),
    ],
)
def test_what_a_config_leaves_out_stays_as_it_is(ignored: list[str], left: int):
    ledger = quantised({**compressed("pack-quantized"), "ignore": ["lm_head", *ignored]})
    assert len(packed_in(ledger)) == 14 - left


def test_groups_of_targets():
    told = compressed("pack-quantized")
    told["config_groups"] = {
        "attention": {"targets": ["re:.*self_attn.*"], "weights": {**GROUP, **FLOAT, "strategy": "channel"}, "format": "float-quantized"},
        "rest": {"targets": ["Linear"], "weights": GROUP},
    }  # fmt: skip
    ledger = quantised(told)
    assert ledger.by("dtype")["float8_e4m3fn"] == 2 * (64 * 64 + 32 * 64) * 2
    assert ledger.by("dtype")["int4"] == 2 * 3 * 96 * 64


def test_experts_are_packed_and_routers_are_not():
    for told in (TILES, compressed("pack-quantized"), {"quant_method": "gptq", "bits": 4, "group_size": 128}):
        names = packed_in(count({**MOE, "quantization_config": told}))
        assert "model.layers.1.mlp.experts.gate_up_proj" in names
        assert not any(name.endswith("mlp.gate.weight") for name in names)


def test_gptq_leaves_modules_by_its_dynamic_rules():
    told = {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 32,
        "dynamic": {r"-:.*\.down_proj": {}, r"+:.*q_proj": {"bits": 8}},
    }
    ledger = quantised(told)
    assert ledger.by("dtype")["int8"] == 2 * 64 * 64
    assert not any("down_proj" in name for name in packed_in(ledger))


def test_a_pattern_that_could_take_for_ever_is_not_read():
    patterns = Patterns(["re:(a+)+$", "re:.*.*.*.*x", "lm_head"])
    assert patterns.unread == ["re:(a+)+$", "re:.*.*.*.*x"]
    assert not patterns.matches("a" * 200)
    assert patterns.matches("lm_head")


@pytest.mark.parametrize("pattern", ["re:.*{}.*x.*y", "re:[a{}"])
def test_patterns_without_end_are_refused_in_one_line(pattern: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, "SECONDS", 0.5)
    told = {**compressed("pack-quantized"), "ignore": [pattern.format(number) for number in range(60_000)]}
    with pytest.raises(BadInput, match="the dictionary: quantization_config: reading it takes more than"):
        quantised(told, num_hidden_layers=9_000)


def test_more_layers_than_can_be_looked_at_one_by_one():
    told = {**TILES, "modules_to_not_convert": ["lm_head", "model.layers.0.mlp"]}
    assert quantised(told, num_hidden_layers=1_000_000).total > packings.OWN
