"""Configs that nest those of their parts: read, set, refused and compared by dotted names."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import assume, given

import configs
import drawing
import tallystick
from native import assert_equal
from nesting import nested
from reference import read
from tallystick.cli.main import main
from tallystick.errors import BadInput
from tallystick.sources.transformers_meta import fallback

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
    with pytest.raises(BadInput) as error:
        tallystick.count({**GEMMA_3, **more})
    assert re.match(rf"the dictionary: {why}", error.value.line)


def test_a_key_that_no_part_has_is_not_set():
    with pytest.raises(BadInput, match=r"no key 'text_config.hiden_size' to set; nearest: text_config.hidden_size"):
        tallystick.count(GEMMA_3, **{"text_config.hiden_size": 32})


SOUND = {
    "model_type": "musicgen", "text_encoder": {"model_type": "t5", "d_model": 8, "num_layers": 1, "d_ff": 4, "num_heads": 2},
    "decoder": {"vocab_size": 9, "hidden_size": 16, "ffn_dim": 4, "num_hidden_layers": 2, "num_attention_heads": 2},
}  # fmt: skip


def sound(**decoder: Any) -> int:
    """What transformers builds of MusicGen with these keys in its decoder."""
    config = transformers.MusicgenConfig(
        **{**copy.deepcopy(SOUND), "decoder": {**SOUND["decoder"], **decoder}}  # type: ignore[dict-item]
    )
    with torch.device("meta"):
        return read(transformers.MusicgenForConditionalGeneration(config)).total


def test_a_dotted_key_is_set_in_a_part_of_a_type_that_is_not_native():
    wider = sound(hidden_size=32)
    assert wider != sound()
    assert tallystick.count(SOUND, **{"decoder.hidden_size": 32}).total == wider
    assert tallystick.count(SOUND, decoder={"hidden_size": 32}).total == wider
    assert tallystick.count({**SOUND, "decoder.hidden_size": 32}).total == wider
    both = {"decoder.hidden_size": 32, "decoder.num_hidden_layers": 3}
    assert tallystick.count(SOUND, **both).total == sound(hidden_size=32, num_hidden_layers=3)


def test_a_part_of_which_such_a_config_says_nothing_keeps_what_its_type_gives_it():
    """LLaVA's encoder is not the one that its type alone would make."""
    text = {"model_type": "llama", **TEXT}
    config = transformers.LlavaConfig(text_config={**text})
    config.vision_config.num_hidden_layers = 3
    with torch.device("meta"):
        truth = read(transformers.LlavaForConditionalGeneration(config)).total
    llava = {"model_type": "llava", "text_config": text}
    assert tallystick.count(llava, **{"vision_config.num_hidden_layers": 3}).total == truth


def test_a_part_inside_of_a_part_is_set_too():
    encoder = {"text_config": TEXT, "vision_config": {**EYES, "image_size": 56, "patch_size": 14}}
    values = {"model_type": "t5gemma2", "encoder": encoder, "decoder": TEXT}
    wider = tallystick.count(values, **{"encoder.text_config.intermediate_size": 13}).total
    assert wider - tallystick.count(values).total == 2 * 3 * 16  # the gate, the way up and the way down of two layers
    with pytest.raises(BadInput, match=r"'encoder.text_config.layers' to set; nearest: encoder\.text_config"):
        tallystick.count(values, **{"encoder.text_config.layers": 13})


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("decodr.hidden_size", 32, " has no key 'decodr.hidden_size' to set; nearest: decoder.hidden_size"),
        ("decoder.hiden_size", 32, " has no key 'decoder.hiden_size' to set; nearest: decoder.hidden_size"),
        ("decoder", {"hiden_size": 32}, " has no key 'decoder.hiden_size' to set; nearest: decoder.hidden_size"),
        ("text_config.hidden_size", 32, " has no key 'text_config.hidden_size' to set"),
        ("to_dict", 3, " has no key 'to_dict' to set"),
        ("decoder", 5, ": decoder is 5, expected an object"),
        ("decoder.hidden_size", "wide", ": transformers cannot build it: .* expected int, got str"),
        ("decoder.num_hidden_layers", 10**9, ": decoder.num_hidden_layers is 1000000000, too many"),
        ("decoder.tie_word_embeddings", "no", ": decoder.tie_word_embeddings is the string 'no', expected true or"),
    ],
)
def test_what_cannot_be_set_in_such_a_part_is_told_in_one_line(key: str, value: Any, why: str):
    with pytest.raises(BadInput, match=rf"^(?:count\(\): )?the dictionary{why}") as raised:
        tallystick.count(SOUND, **{key: value})
    assert "\n" not in str(raised.value)


def test_the_type_of_a_part_can_be_set():
    clip = tallystick.count({**GEMMA_3, "vision_config": {**EYES, "model_type": "clip_vision_model"}}).total
    siglip = {**GEMMA_3, "vision_config": {**EYES, "model_type": "siglip_vision_model"}}
    for whole in (GEMMA_3, siglip):
        assert tallystick.count(whole, **{"vision_config.model_type": "clip_vision_model"}).total == clip
        assert tallystick.count(whole, **{"vision_config.model_type": "siglip_vision_model"}).total != clip


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
    assert whole.parts == alone.parts
    assert "vision and audio towers are not counted: text tokens skip them" in whole.notes


def test_an_encoder_of_another_type_is_left_to_transformers():
    eyes = {**EYES, "model_type": "clip_vision_model"}
    ledger = tallystick.count({**GEMMA_3, "vision_config": eyes})
    assert any("was built by transformers" in note for note in ledger.notes)
    assert any(name.startswith("model.vision_tower.pre_layrnorm") for name in ledger.tensors)


def test_a_model_that_is_left_to_transformers_is_built_once(monkeypatch: pytest.MonkeyPatch):
    built: list[str] = []
    build = fallback.built_by_transformers
    monkeypatch.setattr(
        fallback, "built_by_transformers", lambda kind, *rest, **more: built.append(kind) or build(kind, *rest, **more)
    )
    tallystick.count({**GEMMA_3, "vision_config": {**EYES, "model_type": "clip_vision_model"}})
    assert built == ["gemma3"]


def test_the_dtype_of_a_part_is_that_of_a_whole_that_states_none():
    ledger = tallystick.count({**GEMMA_3, "text_config": {**TEXT, "dtype": "bfloat16"}})
    assert {entry.dtype for entry in ledger.entries} == {"bfloat16"}


def test_keys_that_a_type_takes_from_beside_its_part():
    text = {key: value for key, value in TEXT.items() if key not in ("num_key_value_heads", "head_dim")}
    flat = {"model_type": "fuyu", "patch_size": 4, **text}
    ledger = assert_equal(flat)
    assert ledger.total == tallystick.count({"model_type": "fuyu", "patch_size": 4, "text_config": text}).total
    assert tallystick.count(flat, hidden_size=32).total == tallystick.count({**flat, "hidden_size": 32}).total
    assert_equal({**flat, "text_config": {**text, "hidden_size": 32}})


@given(values=configs.CONFIGS["dots3_note"])
@drawing.drawn(25)
def test_aliases_that_a_type_takes_from_beside_its_part(values: dict[str, Any]):
    assume("text_config.per_layer_config" not in values)  # transformers takes it there for the layers of the whole
    assert_equal({name.removeprefix("text_config."): value for name, value in values.items()})
    assert_equal({**nested(values), "tie_word_embeddings": True})  # read for the text only where the text is beside it


# -- the language alone ---------------------------------------------------------------------------


def noted(ledger: tallystick.Ledger, words: str) -> bool:
    return any(words in note for note in ledger.notes)


def test_the_language_of_a_model_that_sees_is_counted_alone():
    alone = tallystick.count({"model_type": "gemma3_text", **TEXT})
    ledger = tallystick.count(GEMMA_3, part="text")
    assert [entry.name for entry in ledger.entries] == [entry.name for entry in alone.entries]
    assert ledger.total == alone.total < tallystick.count(GEMMA_3).total
    assert noted(ledger, "language part only, text_config: a model of type gemma3_text")


def test_it_is_tied_as_the_whole_is():
    untied = tallystick.count({**GEMMA_3, "tie_word_embeddings": False}, part="text")
    assert untied.total - tallystick.count(GEMMA_3, part="text").total == 40 * 16
    assert not untied.ties


def test_a_type_that_is_its_language_alone_is_counted_as_it_is():
    values = {"model_type": "llama4", "text_config": {**TEXT, "num_local_experts": 2}}
    ledger = tallystick.count(values, part="text")
    assert ledger.total == tallystick.count(values).total
    assert noted(ledger, "language part only, text_config")


@pytest.mark.parametrize("part", ["text_config", "llm_config", "language_config"])
def test_the_language_inside_of_a_type_that_nobody_knows(part: str):
    values = {"model_type": "unheard_of", part: {"model_type": "llama", **TEXT}, "tie_word_embeddings": True}
    ledger = tallystick.count(values, part="text")
    assert ledger.total == tallystick.count({"model_type": "llama", **TEXT, "tie_word_embeddings": True}).total
    assert noted(ledger, f"language part only, {part}: a model of type llama")


def test_the_language_says_its_type_where_the_whole_does_not():
    alone = tallystick.count({"model_type": "llama", **TEXT}).total
    values = {"text_config": {"model_type": "llama", **TEXT}, "vision_config": EYES}
    assert tallystick.count(values, part="text").total == alone
    assert tallystick.count({**values, "architectures": ["LlavaForConditionalGeneration"]}, part="text").total == alone


def test_keys_are_set_in_the_part_by_either_name():
    wider = tallystick.count({"model_type": "gemma3_text", **TEXT, "hidden_size": 32}).total
    assert tallystick.count(GEMMA_3, part="text", hidden_size=32).total == wider
    assert tallystick.count(GEMMA_3, part="text", **{"text_config.hidden_size": 32}).total == wider


@pytest.mark.parametrize("form", ["folder", "file"])
def test_the_language_of_a_config_on_disk(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "config.json").write_text(json.dumps(GEMMA_3))
    place = str(tmp_path if form == "folder" else tmp_path / "config.json")
    total = tallystick.count({"model_type": "gemma3_text", **TEXT}).total
    assert main(["count", place, "--part", "text"]) == 0
    out = capsys.readouterr().out
    assert f"{total:,}" in out
    assert "language part only" in out.replace("\n", " ")


@pytest.mark.parametrize("command", ["formula", "memory", "compute"])
def test_other_commands_take_the_part_too(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GEMMA_3))
    assert main([command, str(path), "--part", "text", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    alone = {"model_type": "gemma3_text", **TEXT}
    expected = {
        "formula": lambda: answer["value"] == tallystick.count(alone).total,
        "memory": lambda: answer["weights_bytes"] == 4 * tallystick.count(alone).total,
        "compute": lambda: answer["forward_flops"] == tallystick.compute(alone).forward_flops,
    }
    assert expected[command]()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"model_type": "llama"}, "the dictionary has no separate language part: none of text_config, llm_config"),
        ({"model_type": "unheard_of", "text_config": TEXT}, "the dictionary: text_config.model_type is missing; set"),
        ({"model_type": "gemma3", "text_config": {"hidden_size": -1}}, "the dictionary: hidden_size is -1, expected"),
        ({**GEMMA_3, "text_config": 5}, "the dictionary: text_config is 5, expected an object"),
        ({"model_type": 7, "text_config": TEXT}, "the dictionary: model_type is 7, expected a name"),
        ({"text_config": TEXT}, "the dictionary: text_config.model_type is missing; set"),
        (3, "3 is not a config, so its language part cannot be counted"),
        ("gpt2", "gpt2 has no separate language part"),
    ],
)
def test_what_has_no_language_alone_is_refused(source: Any, why: str):
    with pytest.raises(BadInput) as error:
        tallystick.count(source, part="text")
    assert re.match(rf"{why}", error.value.line)


def test_weights_have_no_part(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match=r"model\.safetensors is not a config, so its language part cannot be counted"):
        tallystick.count(tmp_path / "model.safetensors", part="text")


def test_a_part_that_nobody_counts_is_refused():
    with pytest.raises(BadInput, match="part is the string 'eyes', expected text"):
        tallystick.count(GEMMA_3, part="eyes")


def test_a_config_without_such_a_part_ends_in_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["count", "gpt2", "--part", "text"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
