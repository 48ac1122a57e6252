"""Configs that nest those of their parts: read, set, refused and compared by dotted names."""

from __future__ import annotations

from typing import Any

import pytest

import tallystick
from tallystick.errors import BadInput

TEXT = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 4,
}  # fmt: skip
EYES = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12, "image_size": 8, "patch_size": 4,
}  # fmt: skip
GEMMA_3: dict[str, Any] = {"model_type": "gemma3", "text_config": TEXT, "vision_config": EYES}


def test_a_dotted_key_is_set_over_the_one_inside():
    wider = tallystick.count({**GEMMA_3, "text_config": {**TEXT, "hidden_size": 32}})
    assert tallystick.count(GEMMA_3, **{"text_config.hidden_size": 32}).total == wider.total
    assert tallystick.count({**GEMMA_3, "text_config.hidden_size": 32}).total == wider.total


def test_a_part_set_as_a_whole_sets_its_keys():
    assert (
        tallystick.count(GEMMA_3, text_config={"hidden_size": 32}).total
        == tallystick.count(GEMMA_3, **{"text_config.hidden_size": 32}).total
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"text_config": {"hidden_size": -1}}, "text_config.hidden_size is -1, expected a positive integer"),
        ({"vision_config": {"patch_size": "4"}}, "vision_config.patch_size is the string '4', expected a positive"),
        ({"text_config": 3}, "text_config is 3, expected an object"),
        (
            {"text_config": {**TEXT, "num_key_value_heads": 3}},
            "text_config.num_attention_heads = 4 is not divisible by num_key_value_heads = 3",
        ),
    ],
)
def test_a_complaint_names_the_part(more: dict[str, Any], why: str):
    with pytest.raises(BadInput, match=f"^the dictionary: {why}"):
        tallystick.count({**GEMMA_3, **more})


def test_a_key_that_no_part_has_is_not_set():
    with pytest.raises(BadInput, match=r"no key 'text_config.hiden_size' to set; nearest: text_config.hidden_size"):
        tallystick.count(GEMMA_3, **{"text_config.hiden_size": 32})


def test_the_parts_have_symbols_of_their_own():
    formula = tallystick.formula(GEMMA_3)
    assert formula.symbols["text_config_hidden_size"] == 16
    assert formula.symbols["vision_config_hidden_size"] == 8
    assert formula.value == tallystick.count(GEMMA_3).total


def test_a_difference_inside_a_part_is_named_by_its_dotted_key():
    [cause] = tallystick.compare(GEMMA_3, {**GEMMA_3, "vision_config": {**EYES, "num_hidden_layers": 3}}).causes
    assert cause.keys == ("vision_config.num_hidden_layers",)
    assert cause.cause == "layers"


def test_what_reads_images_is_not_computed_for_tokens():
    alone = tallystick.compute({"model_type": "gemma3_text", **TEXT}, sequence=9)
    whole = tallystick.compute(GEMMA_3, sequence=9)
    assert whole.parts() == alone.parts()
    assert "what reads images or sound is not counted: no token goes through it" in whole.notes


def test_an_encoder_of_another_type_is_left_to_transformers():
    eyes = {**EYES, "model_type": "clip_vision_model"}
    ledger = tallystick.count({**GEMMA_3, "vision_config": eyes})
    assert any("was built by transformers" in note for note in ledger.notes)
    assert any(name.startswith("model.vision_tower.pre_layrnorm") for name in ledger.tensors)


def test_the_dtype_of_a_part_is_that_of_a_whole_that_states_none():
    ledger = tallystick.count({**GEMMA_3, "text_config": {**TEXT, "dtype": "bfloat16"}})
    assert {entry.dtype for entry in ledger.entries} == {"bfloat16"}
