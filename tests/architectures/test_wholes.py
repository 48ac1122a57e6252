"""The classes that see and hear, of types whose causal language model is their text alone."""

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

import multimodal
import tallystick
from multimodal import WHOLES, small
from native import assert_equal, assert_nothing_is_lacking, count, other_values
from nesting import dotted, nested
from reference import read
from rotating import drawn_by_commit
from tallystick import BadInput, architectures
from tallystick.cli.main import main
from tallystick.core.registry import ModelVariant
from tallystick.sources.configs.classes import variant_of
from unfilled import unfilled

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


def build(values: dict[str, Any], device: str = "meta") -> torch.nn.Module:
    """The class that a config names, as transformers builds it."""
    stated = copy.deepcopy({key: value for key, value in values.items() if key != "model_type"})
    with torch.device(device), unfilled(device):
        (name,) = stated["architectures"]
        return getattr(transformers, name)(transformers.AutoConfig.for_model(values["model_type"], **nested(stated)))


def text(values: dict[str, Any]) -> dict[str, Any]:
    """The same config, that names no class."""
    return {key: value for key, value in values.items() if key != "architectures"}


def variant(model_type: str) -> ModelVariant:
    found = variant_of({"architectures": [WHOLES[model_type].class_name]}, architectures.find(model_type))
    assert found is not None
    return found


@pytest.mark.parametrize("model_type", WHOLES)
def test_the_default_of_the_whole(model_type: str):
    whole = WHOLES[model_type]
    values = {"model_type": model_type, "architectures": [whole.class_name], **whole.lacking}
    ledger = assert_equal(values, read(build(values)))
    assert ledger.notes == (f"counted as the config's class, '{whole.class_name}': its towers in addition to the text",)


@pytest.mark.parametrize("model_type", WHOLES)
@given(data=st.data())
@drawn_by_commit(8)
def test_drawn_configs_of_the_whole(model_type: str, data: st.DataObject):
    values = data.draw(multimodal.drawn(model_type))
    assert_equal(values, read(build(values)))


def undeclared(model_type: str) -> dict[str, Any]:
    """The flags, integers and nulls of the towers' configs that we do not read."""
    known = variant(model_type)
    default = transformers.AutoConfig.for_model(model_type, **WHOLES[model_type].lacking)
    written = dotted({part: getattr(default, part).to_dict() for part in known.parts})
    return {
        key: value
        for key, value in written.items()
        if key not in {*known.keys, *known.aliases}
        and not key.endswith("dtype")
        and (value is None or isinstance(value, bool | int))
    }


@pytest.mark.parametrize("model_type", WHOLES)
def test_no_option_of_a_tower_is_missed(model_type: str):
    """No other key of a tower's config changes a tensor."""
    base, built = small(model_type), 0
    for key, value in undeclared(model_type).items():
        for other in other_values(value):
            values = {**base, key: other}
            try:
                true = read(build(values))
            except Exception:  # no such model: any reason will do
                continue
            assert_equal(values, true)
            built += 1
            break
    assert built > 0


def other_of(value: Any) -> list[Any]:
    return [not value] if isinstance(value, bool) else [value * 2, value + 1] if isinstance(value, int) else []


@pytest.mark.parametrize("model_type", WHOLES)
def test_every_key_of_a_tower_changes_a_tensor(model_type: str):
    whole = WHOLES[model_type]
    for key, declared in variant(model_type).keys.items():
        if key.endswith((*whole.bound, "heads")) and key not in whole.others:
            continue
        base = {**small(model_type), **whole.needs.get(key, {})}
        start = base.get(key, getattr(declared, "default", declared))
        before = count(base).tensors
        others = whole.others.get(key, other_of(start))
        changed = (other if isinstance(other, dict) and key in other else {key: other} for other in others)
        assert any(before != count({**base, **more}).tensors for more in changed), key


# -- what the config names ------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", WHOLES)
def test_without_its_class_the_text_is_counted(model_type: str):
    """And where the class of the text is named: what stands in the config of a tower is not
    read.
    """
    whole, alone = small(model_type), count(text(small(model_type)))
    named = count({**whole, "architectures": [architectures.find(model_type).class_name]})
    assert alone.total == named.total < count(whole).total
    assert not any("vision" in name or "visual" in name or "vqmodel" in name for name in alone.tensors)


@pytest.mark.parametrize("model_type", WHOLES)
def test_the_text_of_the_whole_is_counted_alone(model_type: str):
    alone = tallystick.count(small(model_type), part="text")
    assert alone.tensors == tallystick.count(text(small(model_type))).tensors
    assert alone.notes[0] == "language part only, text_config"


@pytest.mark.parametrize("tied", [True, False])
def test_the_text_is_tied_as_the_whole_is(tied: bool):
    """Its own flag is read where no class, or that of the text, is named."""
    values = {**small("qwen3_5"), "tie_word_embeddings": tied, "text_config.tie_word_embeddings": not tied}
    assert bool(tallystick.count(values).ties) is tied
    assert bool(tallystick.count(values, part="text").ties) is tied
    assert bool(tallystick.count(text(values), part="text").ties) is not tied
    assert bool(tallystick.count(values, part="text", tie_word_embeddings=not tied).ties) is not tied


def test_keys_of_towers_are_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A position of the eyes is as wide as they are: 8."""
    values = nested(small("qwen3_5"))
    more = tallystick.count(values, **{"vision_config.num_position_embeddings": 10}).total
    assert more - tallystick.count(values).total == 8
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    assert main(["count", str(path), "--set", "vision_config.num_position_embeddings=10"]) == 0
    assert f"{more:,}" in capsys.readouterr().out
    with pytest.raises(BadInput, match=r"no key 'vision_config.dept' to set; nearest: vision_config.depth"):
        tallystick.count(values, **{"vision_config.dept": 10})


@pytest.mark.parametrize(
    ("model_type", "key", "value", "why"),
    [
        ("llama4", "patch_size", [4, 4], "patch_size is .*, expected a positive integer"),
        ("llama4", "hidden_size", None, "hidden_size is None, expected a positive integer"),
        ("mllama", "supported_aspect_ratios", 3, "supported_aspect_ratios must list pairs of integers, or be null"),
        ("mllama", "supported_aspect_ratios", [1], "supported_aspect_ratios must list pairs of integers, or be null"),
        ("mllama", "max_num_tiles", 5, "max_num_tiles = 5 needs its own supported_aspect_ratios"),
        ("qwen3_5", "depth", "3", "depth is the string '3', expected a positive integer"),
        ("qwen3_5_moe", "out_hidden_size", -1, "out_hidden_size is -1, expected a positive integer"),
        ("emu3", "num_attention_heads", 3, "hidden_size = 64 is not divisible by num_attention_heads = 3"),
        ("emu3", "base_channels", 33, "base_channels = 33 makes a stage of 33 channels, not divisible by 32 groups"),
        ("emu3", "channel_multiplier", [], "channel_multiplier lists no stage"),
        ("emu3", "attn_resolutions", "all", "attn_resolutions is the string 'all', expected a list of the numbers"),
        ("dots3_note", "adapter_in_dim", 9, "adapter_in_dim = 9 is not hidden_size = 8"),
        ("dots3_note", "adapter_out_dim", 9, r"adapter_out_dim = 9 is not text_config\.hidden_size = 5120"),
        ("dots3_note", "num_attention_heads", 3, "hidden_size = 8 is not divisible by num_attention_heads = 3"),
        ("dots3_note", "mlp_layer_types", ["dense"], "mlp_layer_types must list dense or sparse for each of the 3"),
        ("dots3_note", "pyramid_num_routed", [4], "pyramid_num_routed must list how many experts each of the 3 layers"),
        ("dots3_note", "mlp_bias", True, "mlp_bias is true, but experts have no bias"),
        ("dots3_note", "num_experts_per_tok", 4, "num_experts_per_tok = 4 is more than num_local_experts = 3"),
        ("dots3_note", "per_layer_config", {"9": {}}, "per_layer_config names the string '9', expected the number of"),
    ],
)
def test_what_makes_no_tower_is_refused(model_type: str, key: str, value: Any, why: str):
    part = next(iter(variant(model_type).parts))
    with pytest.raises(BadInput, match=f"^test: {part}.{why}"):
        count({**small(model_type), f"{part}.{key}": value})


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("whisper_config", 3, "whisper_config is 3, expected an object"),
        ("whisper_config", {"d_model": "8"}, "whisper_config.d_model is the string '8', expected a positive integer"),
        ("num_attention_heads", 3, "hidden_size = 8 is not divisible by num_attention_heads = 3"),
        ("adapter_input_size", 9, "adapter_input_size = 9 is not hidden_size = 8"),
    ],
)
def test_what_makes_no_ears_is_refused(key: str, value: Any, why: str):
    with pytest.raises(BadInput, match=f"^test: audio_config.{why}"):
        count({**small("dots3_note"), f"audio_config.{key}": value})


# -- saved ----------------------------------------------------------------------------------------


def bare(model_type: str) -> dict[str, Any]:
    """A config that names the whole without its head."""
    return small(model_type, architectures=[WHOLES[model_type].class_name.replace("ForConditionalGeneration", "Model")])


BARE = [name for name in WHOLES if name not in ("llama4", "dots3_note")]  # the first has no such class


@pytest.mark.parametrize(
    "values", [*map(small, WHOLES), *map(bare, BARE)], ids=lambda values: values["architectures"][0]
)
def test_a_saved_whole_lacks_nothing(values: dict[str, Any], tmp_path: Path):
    if values["model_type"] == "dots3_note":
        values = {**values, **NARROW}
    assert_nothing_is_lacking(build(values, device="cpu"), tmp_path)


NARROW = {"text_config.hidden_size": 16, "vision_config.adapter_out_dim": 16, "audio_config.adapter_out_dim": 16}


@pytest.mark.parametrize("model_type", WHOLES)
def test_both_layouts_of_the_whole_count_the_same(model_type: str):
    ledger, filed = (count(small(model_type), published=published) for published in (False, True))
    assert filed.totals == ledger.totals
    assert filed.by("role") == ledger.by("role")


@pytest.mark.parametrize("model_type", BARE)
def test_the_whole_without_its_head_as_transformers_builds_it(model_type: str):
    assert_equal(bare(model_type), read(build(bare(model_type))))


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", ["llama4", "qwen3_5", "qwen3_5_moe", "emu3"])
def test_what_a_tower_does_is_not_computed_for_tokens(model_type: str):
    whole, alone = (tallystick.compute(values, sequence=9) for values in (small(model_type), text(small(model_type))))
    assert whole.forward_flops == alone.forward_flops
    assert "vision and audio towers are not counted: text tokens skip them" in whole.notes


def test_a_layer_more_of_the_eyes_is_the_cause_of_a_difference():
    [cause] = tallystick.compare(small("qwen3_5"), {**small("qwen3_5"), "vision_config.depth": 3}).causes
    assert cause.keys == ("vision_config.depth",)
    assert cause.cause == "layers"
