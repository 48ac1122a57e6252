"""The class that a config names: a language model, a body alone, one with another head, a class of
another type, or one that nobody has.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers.models.auto import modeling_auto as auto

import configs
import tallystick
from drawing import FLAG, INNER, LAYERS, drawn, some, sometimes
from native import NATIVE, assert_equal, assert_nothing_is_lacking, small
from nesting import nested
from reference import read, truth
from rotating import some_by_commit
from small import small_model
from tallystick import BadInput, architectures
from tallystick.sources.configs.classes import counts
from unfilled import unfilled

CLASSIFIERS = auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
ALL = (auto.MODEL_MAPPING_NAMES, CLASSIFIERS, auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES)
SOME = (
    auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES,
    auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
    auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES,
    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)


def is_native(model_type: str, name: str) -> bool:
    return counts({"architectures": [name]}, architectures.find(model_type))


def classes(model_type: str) -> list[str]:
    """The classes of a type, beside its language model, that transformers has and we have too."""
    named = {mapping[model_type] for mapping in (*ALL, *SOME) if model_type in mapping}
    return sorted(name for name in named - {architectures.find(model_type).class_name} if is_native(model_type, name))


def sees(model_type: str) -> bool:
    """Whether classes of a type have towers beside its language model: these have tests of their
    own.
    """
    return any(variant.parts for variant in (architectures.find(model_type).variants or {}).values())


TYPES = [name for name in NATIVE if classes(name) and not sees(name)]
OWN = [name for name in TYPES if architectures.find(name).variants is not None]
OTHERS = sorted({*TYPES} - {*OWN})


def test_which_classes_are_not_native():
    """Of a type, they hold more than its language model: an encoder, or what sees."""
    left = {
        mapping[name] for mapping in ALL for name in NATIVE if name in mapping and not is_native(name, mapping[name])
    }
    assert left == {
        "Dots3NoteModel", "MarianModel", "ProphetNetModel", "Qwen3_5ForSequenceClassification",
        "Qwen3_5ForTokenClassification", "WhisperModel",
    }  # fmt: skip


def of_class(model_type: str, name: str, **more: Any) -> dict[str, Any]:
    """A small config that names a class; an encoder, where the class has one, is unlike the
    decoder.
    """
    values = small(model_type, architectures=[name], **more)
    encoder = {"encoder_layers": 3, "encoder_ffn_dim": 20, "encoder_attention_heads": 4}
    return {**encoder, **values} if "decoder_ffn_dim" in values else values


def build(name: str, values: dict[str, Any], device: str = "meta") -> Any:
    stated = copy.deepcopy({key: value for key, value in values.items() if key != "model_type"})
    with torch.device(device), unfilled(device):
        return getattr(transformers, name)(transformers.AutoConfig.for_model(values["model_type"], **nested(stated)))


THREE = {"id2label": {"0": "a", "1": "b", "2": "c"}}


@pytest.mark.parametrize("model_type", [*OWN, *some_by_commit(OTHERS, 20)])
def test_another_class_is_counted_as_transformers_builds_it(model_type: str):
    for name in classes(model_type):
        values = of_class(model_type, name, **THREE)
        notes = assert_equal(values, read(build(name, values))).notes
        assert all(f"counted as the config's class, '{name}': " in note for note in notes)
        assert name.endswith("ForMaskedLM") or len(notes) == 1


ENCODER = {
    "encoder_layers": LAYERS,
    "encoder_ffn_dim": sometimes(INNER),
    "num_hidden_layers": sometimes(LAYERS),  # another name of the first
}
SUMMARY = {"summary_use_proj": sometimes(FLAG), "summary_proj_to_labels": sometimes(FLAG)}
MORE = {
    **dict.fromkeys(("bart", "blenderbot", "blenderbot-small", "mbart", "pegasus", "plbart"), ENCODER),
    "bigbird_pegasus": {**ENCODER, "tie_word_embeddings": sometimes(FLAG)},  # its language model ties nothing
    "mvp": {**ENCODER, "use_prompt": FLAG, "prompt_length": sometimes(INNER), "prompt_mid_dim": sometimes(INNER)},
    "xlm": SUMMARY,
    "xlnet": SUMMARY,
}


@pytest.mark.parametrize("model_type", [*OWN, *some(OTHERS, 10)])
@given(data=st.data())
@drawn(5)
def test_drawn_configs_of_another_class(model_type: str, data: st.DataObject):
    name = data.draw(st.sampled_from(classes(model_type)))
    more = {
        "num_labels": sometimes(st.integers(1, 9)),
        "token_classification_bias": sometimes(FLAG),
        "is_decoder": sometimes(FLAG) if model_type == "reformer" else st.just(None),
        **MORE.get(model_type, {}),
    }
    values = {**data.draw(configs.CONFIGS[model_type]), "architectures": [name]}
    values |= {key: value for key, of in more.items() if isinstance(value := data.draw(of), int)}
    if "decoder_attention_heads" in values:
        values["encoder_attention_heads"] = values["decoder_attention_heads"]
    assert_equal(values, read(build(name, values)))


# -- saved ----------------------------------------------------------------------------------------

SAVED = [
    ("bart", "BartForSequenceClassification"), ("bart", "BartForConditionalGeneration"), ("bert", "BertModel"),
    ("bert", "BertForPreTraining"), ("bert", "BertForTokenClassification"), ("electra", "ElectraForPreTraining"),
    ("fuyu", "FuyuModel"), ("gpt2", "GPT2Model"), ("gpt2", "GPT2ForTokenClassification"), ("llama", "LlamaModel"),
    ("llama", "LlamaForSequenceClassification"), ("mixtral", "MixtralModel"), ("xlm-roberta", "XLMRobertaModel"),
    ("xlm-roberta", "XLMRobertaForSequenceClassification"), ("zamba", "ZambaModel"),
]  # fmt: skip


@pytest.mark.parametrize(("model_type", "name"), SAVED)
def test_a_saved_class_lacks_nothing(model_type: str, name: str, tmp_path: Path):
    assert_nothing_is_lacking(build(name, of_class(model_type, name, **THREE), device="cpu"), tmp_path)


def saved(name: str, folder: Path) -> Any:
    model_type = "llama" if name.startswith("Llama") else "bert"
    model = build(name, of_class(model_type, name), device="cpu")
    model.save_pretrained(folder)
    return model


def says(folder: Path, name: str) -> None:
    """Have the config of a folder name another class."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "architectures": [name]}))


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "BertForMaskedLM"])
def test_a_body_under_its_name_in_the_language_model(name: str, tmp_path: Path):
    """Loaders take `model.` and `bert.` away. A head that is there although the config names the
    body alone is counted.
    """
    model = saved(name, tmp_path)
    says(tmp_path, {"LlamaForCausalLM": "LlamaModel", "BertForMaskedLM": "BertModel"}[name])
    whole = tallystick.count(tmp_path)
    assert (whole.total, whole.mismatches) == (sum(one.numel() for one in model.parameters()), {})

    file = tmp_path / "model.safetensors"
    prefix = f"{model.base_model_prefix}."
    body = {name: tensor for name, tensor in load_file(file).items() if name.startswith(prefix)}
    pooler = {"bert.pooler.dense.weight": torch.zeros(16, 16), "bert.pooler.dense.bias": torch.zeros(16)}
    save_file(body | (pooler if prefix == "bert." else {}), file, metadata={"format": "pt"})
    alone = tallystick.count(tmp_path)
    assert alone.mismatches == {}
    assert alone.total == alone.described.total == whole.described.total - head_of(model) + 272 * (prefix == "bert.")


def head_of(model: Any) -> int:
    return sum(one.numel() for name, one in model.named_parameters() if not name.startswith(model.base_model_prefix))


def test_a_classifier_that_is_lost_is_missed(tmp_path: Path):
    saved("BertForSequenceClassification", tmp_path)
    file = tmp_path / "model.safetensors"
    lost = ("bert.pooler.dense.weight", "classifier.weight")
    save_file({name: t for name, t in load_file(file).items() if name not in lost}, file, metadata={"format": "pt"})
    assert sorted(tallystick.count(tmp_path).mismatches["missing"]) == sorted(lost)


# -- labels ---------------------------------------------------------------------------------------


def classifier(model_type: str, **more: Any) -> dict[str, Any]:
    return small(model_type, architectures=[CLASSIFIERS[model_type]], **more)


def score(values: dict[str, Any], **overrides: Any) -> tuple[int, ...]:
    return tuple(map(int, tallystick.count(values, **overrides).tensors["score.weight"].shape))


def test_labels_are_those_that_are_named():
    """Two, as transformers has it, where none are; those named before a number; and what the user
    sets before all.
    """
    assert score(classifier("llama")) == (2, 16)
    assert score(classifier("llama", num_labels=1)) == (1, 16)
    assert score(classifier("llama", num_labels=1, id2label={"0": "a", "1": "b", "2": "c"})) == (3, 16)
    assert score(classifier("llama"), num_labels=5) == (5, 16)
    with pytest.raises(BadInput, match="num_labels is -1, expected a positive integer"):
        score(classifier("llama", num_labels=-1))


def test_a_body_alone_gives_no_logits():
    whole, alone, scored = (
        tallystick.memory(small("llama", architectures=[name]), mode="training", sequence=8)
        for name in ("LlamaForCausalLM", "LlamaModel", "LlamaForSequenceClassification")
    )
    assert [any(line.part == "logits" for line in one.lines) for one in (whole, alone, scored)] == [True, False, False]


def test_two_classes_of_a_type_differ_by_their_tensors():
    """The head has 40 rows of 16 elements; the key that differs besides is not taken for the
    cause.
    """
    whole, alone = (
        small("llama", architectures=[name], tie_word_embeddings=tied)
        for name, tied in (("LlamaForCausalLM", False), ("LlamaModel", True))
    )
    (cause,) = tallystick.compare(whole, alone).causes
    assert (cause.names, cause.parameters) == (("lm_head.weight",), -640)
    wider = tallystick.compare(alone, {**alone, "hidden_size": 32})
    assert [cause.keys for cause in wider.causes] == [("hidden_size",)]


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
    """ProphetNet's language model is its decoder. A checkpoint or a module of the whole has an
    encoder too, and lacks nothing.
    """
    whole = small_model("prophetnet", auto="AutoModelForSeq2SeqLM")
    decoder = small_model("prophetnet")
    for name, model in (("whole", whole), ("decoder", decoder)):
        model.save_pretrained(tmp_path / name)
        for ledger in (tallystick.count(model), tallystick.count(tmp_path / name)):
            assert ledger.total == sum(parameter.numel() for parameter in model.parameters())
            assert not ledger.mismatches
            assert (ledger.described is None) is (model is whole)
    assert tallystick.count(tmp_path / "whole").notes[0] == (
        "config.json has 'ProphetNetForConditionalGeneration', which is not known natively: roles are guessed from names"
    )


def test_a_class_of_several_types_is_that_of_the_one_that_the_others_rename():
    """GPT-SW3 is of GPT-2's class too."""
    assert tallystick.count({"architectures": ["GPT2LMHeadModel"]}).architecture == "gpt2"


def note(values: dict[str, Any]) -> str:
    (found,) = tallystick.count({**values, "dtype": "float32"}).notes
    return found


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "LlamaModel", "MistralForCausalLM", "MistralModel"])
def test_without_a_type_the_class_tells_it(name: str):
    """Llama's are InternLM3's too, whose defaults are others."""
    values = {**small("llama"), "architectures": [name], "model_type": None}
    assert tallystick.count(values).architecture == name.removesuffix("ForCausalLM").removesuffix("Model").lower()


@pytest.mark.parametrize("name", ["MistralForCausalLM", "MistralModel", "MistralForSequenceClassification"])
def test_a_class_of_another_type_is_said(name: str):
    values = small("llama", architectures=[name])
    assert note(values) == (
        f"the config names '{name}', a class of model type mistral, but says model_type llama;"
        " counted as LlamaForCausalLM, the causal language model of its type"
    )
    assert tallystick.count(values).total == tallystick.count(small("llama")).total


@pytest.mark.parametrize("name", ["LlamaForRewardModel", "Nobody"])
def test_a_class_that_is_not_counted_is_said(name: str):
    assert note(small("llama", architectures=[name])) == (
        f"the config names '{name}'; counted as LlamaForCausalLM, the causal language model of its type"
    )


def test_tensors_that_are_numbered_themselves_are_found_in_a_folder(tmp_path: Path):
    """GIT has a vector for each image of a row, and Inkling 2 files its queries so:
    `img_temporal_embedding.1`.
    """
    eyes = {
        "hidden_size": 4,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "intermediate_size": 4,
        "image_size": 8,
        "patch_size": 2,
    }
    sizes = {
        "vocab_size": 60,
        "hidden_size": 4,
        "intermediate_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
    }
    config = {"model_type": "git", **sizes, "num_image_with_embedding": 3, "vision_config": eyes}
    assert_nothing_is_lacking(build("GitForCausalLM", config, device="cpu"), tmp_path)


def test_an_unknown_type_is_counted_as_the_class_that_it_names():
    """Kimi K2 is DeepSeek-V3 under a name of its own."""
    stated = {**transformers.DeepseekV3Config().to_dict(), **small("deepseek_v3")}
    ledger = tallystick.count({**stated, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2"})
    assert ledger.total == truth(stated).total
    assert ledger.notes[0] == (
        "'kimi_k2' is not known natively: counted as deepseek_v3, because the config names its class 'DeepseekV3ForCausalLM'"
    )


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size"])
def test_an_unknown_type_gets_no_size_by_default(key: str):
    values = {**small("llama"), "architectures": ["LlamaForCausalLM"], "model_type": "their_llama"}
    values.pop(key)
    with pytest.raises(BadInput, match="their_llama"):
        tallystick.count(values)


MT5 = {"model_type": "mt5", "vocab_size": 9, "d_model": 8, "d_kv": 4, "d_ff": 6, "num_layers": 2, "num_heads": 2}


@pytest.mark.parametrize("name", ["MT5ForConditionalGeneration", "MT5EncoderModel", "MT5ForSequenceClassification"])
def test_of_a_type_that_is_not_native_the_class_that_is_named_is_counted(name: str):
    config = transformers.MT5Config(**{key: value for key, value in MT5.items() if key != "model_type"})
    with torch.device("meta"):
        truth = read(getattr(transformers, name)(config))
    ledger = tallystick.count({**MT5, "architectures": [name], "dtype": "bfloat16"})
    assert ledger.total == truth.total
    assert {entry.dtype for entry in ledger.entries} == {"bfloat16"}
    assert f"mt5 is not known natively: {name} was built by transformers" in ledger.notes[0]
    assert not any("the config names" in note or "config's class" in note for note in ledger.notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("LlamaForCausalLM", ", a class of model type llama, but says model_type mt5"),
        ("ViTModel", ""),
        ("Nobody", ""),
    ],
)
def test_a_class_that_is_none_of_such_a_type_is_said(name: str, why: str):
    ledger = tallystick.count({**MT5, "architectures": [name]})
    assert ledger.total == tallystick.count(MT5).total
    assert ledger.notes[1] == f"the config names '{name}'{why}; counted as MT5ForConditionalGeneration"


@pytest.mark.parametrize(
    "values",
    [
        {"architectures": ["LlavaForConditionalGeneration"], "text_config": {"model_type": "llama"}},
        {"text_config": {"model_type": "llama"}, "vision_config": {}},
        {"architectures": ["MT5ForConditionalGeneration"], "d_model": 8},
    ],
)
def test_a_type_that_nothing_tells_is_asked_for(values: dict[str, Any]):
    with pytest.raises(BadInput, match=r"^the dictionary: model_type is missing; set it, such as --set model_type="):
        tallystick.count(values)
