"""What a preset says: all that an answer reads, nothing else, its family and month; and how it is
found.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from published_presets import PUBLISHED, ROUNDED
from tallystick import architectures
from tallystick.core.dtypes import BITS
from tallystick.presets import PRESETS, RELEASES, found
from tallystick.sources.configs.native import _Recipe

POSITIONS = ("max_position_embeddings", "n_positions", "seq_length")
# Keys whose default in the type is often not what is published.
DECIDING = ("tie_word_embeddings", "sliding_window", "layer_types", "partial_rotary_factor")
NO_NUMBER = {
    "dtype",
    "tie_word_embeddings",
    "architectures",
    "quantization_config",
    "expert_dtype",
    "num_nextn_predict_layers",
    *POSITIONS,
}


@pytest.mark.parametrize("name", sorted(PUBLISHED.keys() | ROUNDED.keys()))
def test_a_preset_says_all_that_an_answer_reads(name: str):
    values = PRESETS[name]
    text = values.get("text_config", values)
    family = architectures.find(text["model_type"]) or architectures.find(values["model_type"])
    known = {**family.keys, **family.running}
    missing = [key for key in DECIDING if key in known and key not in {**values, **text}]
    if text.get("use_sliding_window") is False:
        missing = [key for key in missing if key not in ("sliding_window", "layer_types")]
    if text["model_type"] in (
        "llama4_text",
        "smollm3",
        "deepseek_v4",
        "gemma2",
        "gpt_neox",
    ):  # the rule of the type itself
        missing = [key for key in missing if key != "layer_types"]
    assert missing == []
    assert any(key in text for key in POSITIONS)
    assert "dtype" in {**values, **text} or RELEASES[name].family == "GPT-3"  # whose paper states none


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_only_what_matters(name: str):
    """Every key is one that its architecture reads, besides those that say how it is stored."""
    values: dict[str, Any] = PRESETS[name]
    family = architectures.find(values["model_type"])
    recipe = _Recipe(family, variant=None)
    known = {
        *recipe.keys,
        *family.running,
        *family.parts,
        *recipe.aliases,
        "text_config",
        "vision_config",
        "audio_config",
    }
    assert set(values) - {"model_type"} - NO_NUMBER <= known
    assert values.get("dtype", "float32") in BITS


def test_every_preset_has_a_family_and_a_month():
    taught = {name for name, values in PRESETS.items() if values["model_type"] in architectures.TEACHING}
    for name, release in RELEASES.items():
        assert release.family
        assert bool(re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", release.month)) == (name not in taught)


def test_presets_are_searched_by_name_and_family():
    assert found(["qwen3-", "a3b"]) == ["qwen3-30b-a3b", "qwen3-next-80b-a3b"]
    assert set(found(["Kimi"])) == {"kimi-k2"}
    assert found(["pythia", "gpt"]) == []
    assert found([]) == list(PRESETS)
