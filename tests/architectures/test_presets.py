"""Every preset against the count that was published for it, and against the model that transformers
builds.
"""

from __future__ import annotations

import pytest

import measurements
from measurements import measured
from native import assert_same, held
from outside_figures import figures_of
from published_presets import DEEPMIND, ENCODER_DECODERS, PUBLISHED, ROUNDED, count
from tallystick import architectures
from tallystick.presets import PRESETS
from tallystick.sources.configs.config import ledger_from_config

# Published rounded: table 1 of the PaLM paper. The figures are in tests/outside.
PALM = {one.command.split()[1]: one for one in figures_of("PaLM", "count")}


def test_every_preset_has_a_published_count():
    taught = {name for name, values in PRESETS.items() if values["model_type"] in architectures.TEACHING}
    published = {*PUBLISHED, *ENCODER_DECODERS, *ROUNDED, *PALM, *DEEPMIND}
    assert set(PRESETS) - taught == published  # test_teaching.py works the others out by hand


@pytest.mark.parametrize("name", [*PUBLISHED, *ENCODER_DECODERS])
def test_published_count(name: str):
    ledger = count(name)
    assert ledger.total == {**PUBLISHED, **ENCODER_DECODERS}[name]
    assert ledger.kind == "preset"


@pytest.mark.parametrize("name", PALM)
def test_palm_rounds_to_table_1(name: str):
    assert PALM[name].agrees


@pytest.mark.parametrize("name", DEEPMIND)
def test_gopher_and_chinchilla_round_to_their_tables(name: str):
    published = DEEPMIND[name]
    millions, places = (1e6, 0) if published.endswith("M") else (1e9, len(published.partition(".")[2][:-1]))
    assert f"{count(name).total / millions:.{places}f}{published[-1]}" == published


def test_palm_with_norm_scales_would_not_round_to_table_1():
    """Which is why `norm_scale` is off: one for each of 118 blocks and a last one, 18,432 numbers
    each.
    """
    values = PRESETS["palm-540b"]
    scaled = ledger_from_config({**values, "norm_scale": True}, {}, source="test")
    assert scaled.total - count("palm-540b").total == 119 * 18_432
    assert f"{scaled.total / 1e9:.2f}" == "540.36"


@pytest.mark.parametrize("name", [*PUBLISHED, *ROUNDED])
def test_preset_is_what_transformers_builds(name: str):
    storage = ("dtype", "quantization_config")
    values = {key: value for key, value in PRESETS[name].items() if key not in storage}
    ours, true = held(count(name)), measured("preset_models:held", values)
    if ours.digest != true and measurements.MODE != "none":
        from preset_models import built

        assert_same(ours, built(values), values)
    assert ours.digest == true


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_counts(name: str):
    """Cards round in ways of their own, and some count what predicts further tokens: within 3%,
    active ones within 1.6B.
    """
    totals, (all_, active) = count(name).totals, ROUNDED[name]
    assert totals["unique"] / 1e9 == pytest.approx(float(all_), rel=0.03)
    assert totals["active"] / 1e9 == pytest.approx(float(active), abs=1.8)


def test_deepseek_v3_with_its_routing_biases():
    """The figure that counts what the file holds: one bias for each of 256 experts in 58 layers."""
    totals = count("deepseek-v3").totals
    assert totals["unique"] + totals["buffers"] == 671_026_419_200
    assert totals["buffers"] == 58 * 256
