"""The class that a config names: a language model, a sequence classifier, a class of another type, or one that nobody has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS

import tallystick
from drawing import nested
from native import NATIVE, assert_equal, small
from small import small_model
from tallystick import BadInput, architectures
from truth import read

SCORED = [name for name in NATIVE if name in CLASSIFIERS and architectures.find(name).scored]


def classifier(model_type: str, **more: Any) -> dict[str, Any]:
    return small(model_type, architectures=[CLASSIFIERS[model_type]], **more)


@pytest.mark.parametrize("model_type", SCORED)
def test_a_sequence_classifier_is_counted_as_transformers_builds_it(model_type: str):
    values = classifier(model_type, id2label={"0": "a", "1": "b", "2": "c"})
    stated = {key: value for key, value in values.items() if key != "model_type"}
    with torch.device("meta"):
        model = getattr(transformers, CLASSIFIERS[model_type])(
            transformers.AutoConfig.for_model(model_type, **nested(stated))
        )
    ledger = assert_equal(values, read(model))
    assert ledger.notes == (
        f"counted as the class that the config names, '{CLASSIFIERS[model_type]}': `score` in place of the LM head",
    )


def score(values: dict[str, Any], **overrides: Any) -> tuple[int, ...]:
    return tuple(map(int, tallystick.count(values, **overrides).tensors["score.weight"].shape))


def test_labels_are_those_that_are_named():
    """Two, as transformers has it, where none are; those named before a number; and what the user sets before all."""
    assert score(classifier("llama")) == (2, 16)
    assert score(classifier("llama", num_labels=1)) == (1, 16)
    assert score(classifier("llama", num_labels=1, id2label={"0": "a", "1": "b", "2": "c"})) == (3, 16)
    assert score(classifier("llama"), num_labels=5) == (5, 16)
    with pytest.raises(BadInput, match="num_labels is -1, expected a positive integer"):
        score(classifier("llama", num_labels=-1))


def test_a_tied_head_leaves_with_its_tie():
    ledger = tallystick.count(classifier("gpt2"))
    assert not ledger.ties
    assert "transformer.wte.weight" in ledger.tensors


def test_the_formula_of_a_classifier_knows_its_labels():
    """At 3 labels and at 7: a row of the width, 16, for each."""
    three, seven = (tallystick.formula(classifier("llama", num_labels=labels)) for labels in (3, 7))
    assert seven.symbols["num_labels"] == 7
    assert seven.value - three.value == 4 * 16
    assert three.expression == seven.expression


def test_a_model_of_two_parts_is_not_described_by_its_decoder(tmp_path: Path):
    """BART's language model is its decoder. A checkpoint or a module of the whole has an encoder too, and lacks nothing."""
    whole = small_model("bart", auto="AutoModelForSeq2SeqLM")
    decoder = small_model("bart")
    for name, model in (("whole", whole), ("decoder", decoder)):
        model.save_pretrained(tmp_path / name)
        for ledger in (tallystick.count(model), tallystick.count(tmp_path / name)):
            assert ledger.total == sum(parameter.numel() for parameter in model.parameters())
            assert not ledger.mismatches
            assert (ledger.described is None) is (model is whole)
    assert tallystick.count(tmp_path / "whole").notes[0] == (
        "config.json says 'BartForConditionalGeneration', which is not known natively: roles by name"
    )


def test_a_class_of_several_types_is_that_of_the_one_that_the_others_rename():
    """GPT-SW3 is of GPT-2's class too."""
    assert tallystick.count({"architectures": ["GPT2LMHeadModel"]}).architecture == "gpt2"


def note(values: dict[str, Any]) -> str:
    (found,) = tallystick.count(values).notes
    return found


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "MistralForCausalLM"])
def test_without_a_type_the_class_tells_it(name: str):
    """Llama's is InternLM3's too, whose defaults are others."""
    values = {**small("llama"), "architectures": [name], "model_type": None}
    assert tallystick.count(values).architecture == name.removesuffix("ForCausalLM").lower()


def test_a_class_of_another_type_is_said():
    values = small("llama", architectures=["MistralForCausalLM"])
    assert note(values) == (
        "the config names 'MistralForCausalLM', a class of the model type mistral, and says model_type llama;"
        " counted as LlamaForCausalLM, the causal language model of its type"
    )
    assert tallystick.count(values).total == tallystick.count(small("llama")).total


@pytest.mark.parametrize("name", ["LlamaModel", "LlamaForRewardModel", "MistralForSequenceClassification", "Nobody"])
def test_a_class_that_is_not_counted_is_said(name: str):
    assert note(small("llama", architectures=[name])) == (
        f"the config names '{name}'; counted as LlamaForCausalLM, the causal language model of its type"
    )
