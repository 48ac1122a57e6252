"""Every preset against the count that was published for it, and against the model that transformers builds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tallystick import architectures
from tallystick.dtypes import BITS
from tallystick.ledger import Ledger
from tallystick.presets import PRESETS
from tallystick.sources.config import ledger_from_config
from truth import truth

# Elements of distinct tensors, from model cards, from the sizes of published weights, and from the papers.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "tinyllama-1.1b": 1_100_048_384,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "mistral-7b": 7_241_732_096,
    "mistral-nemo-12b": 12_247_782_400,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-270m": 268_098_176,
    "gemma-3-1b": 999_885_952,
    "phi-1.5": 1_418_270_720,
    "phi-2": 2_779_683_840,
    "phi-3-mini": 3_821_079_552,
    "phi-3-medium": 13_960_238_080,
    "phi-4": 14_659_507_200,
    "pythia-70m": 70_426_624,
    "pythia-160m": 162_322_944,
    "pythia-410m": 405_334_016,
    "pythia-1b": 1_011_781_632,
    "pythia-1.4b": 1_414_647_808,
    "pythia-2.8b": 2_775_208_960,
    "pythia-6.9b": 6_857_302_016,
    "pythia-12b": 11_846_072_320,
    "gpt-neox-20b": 20_554_567_680,
    "gpt-j-6b": 6_050_882_784,
    "opt-125m": 125_239_296,
    "opt-350m": 331_196_416,
    "opt-1.3b": 1_315_758_080,
    "opt-2.7b": 2_651_596_800,
    "opt-6.7b": 6_658_473_984,
    "opt-13b": 12_853_473_280,
    "opt-30b": 29_974_540_288,
    "bloom-560m": 559_214_592,
    "bloom-1b1": 1_065_314_304,
    "bloom-1b7": 1_722_408_960,
    "bloom-3b": 3_002_557_440,
    "bloom-7b1": 7_069_016_064,
    "bloom": 176_247_271_424,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "starcoder2-3b": 3_030_371_328,
    "starcoder2-7b": 7_173_923_840,
    "starcoder2-15b": 15_957_889_024,
    "olmo-2-1b": 1_484_916_736,
    "olmo-2-7b": 7_298_617_344,
    "olmo-2-13b": 13_716_198_400,
    "olmo-2-32b": 32_234_279_936,
    "granite-3.0-2b": 2_533_531_648,
    "granite-3.0-8b": 8_170_848_256,
    "deepseek-v3": 671_026_404_352,
    "olmo-7b": 6_888_095_744,
    "olmoe-1b-7b": 6_919_161_856,
    "smollm3-3b": 3_075_098_624,
    "command-r": 34_980_831_232,
    "glm-4-9b": 9_399_951_360,
    "phi-3.5-moe": 41_873_153_344,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "deepseek-v2-lite": 15_706_484_224,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
}

# Published rounded: table 1 of the PaLM paper, in billions.
PALM = {"palm-8b": "8.63", "palm-62b": "62.50", "palm-540b": "540.35"}


def count(name: str) -> Ledger:
    return ledger_from_config(PRESETS[name], {}, source=name, kind="preset")


def test_every_preset_has_a_published_count():
    taught = {name for name, values in PRESETS.items() if values["model_type"] in architectures.TEACHING}
    assert set(PRESETS) - taught == set(PUBLISHED) | set(PALM)  # those are worked out by hand in test_teaching.py


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_count(name: str):
    ledger = count(name)
    assert ledger.total == PUBLISHED[name]
    assert ledger.kind == "preset"


@pytest.mark.parametrize("name", PALM)
def test_palm_rounds_to_table_1(name: str):
    assert f"{count(name).total / 1e9:.2f}" == PALM[name]


def test_palm_with_norm_scales_would_not_round_to_table_1():
    """Which is why `norm_scale` is off: one for each of 118 blocks and a last one, 18,432 numbers each."""
    values = PRESETS["palm-540b"]
    scaled = ledger_from_config({**values, "norm_scale": True}, {}, source="test")
    assert scaled.total - count("palm-540b").total == 119 * 18_432
    assert f"{scaled.total / 1e9:.2f}" == "540.36"


@pytest.mark.parametrize("name", PUBLISHED)
def test_preset_is_what_transformers_builds(name: str):
    true = truth({key: value for key, value in PRESETS[name].items() if key != "dtype"})
    ledger = count(name)
    assert ledger.total == true.total
    assert {entry.name: tuple(entry.shape) for entry in ledger.entries if not entry.buffer} == true.shapes
    assert {frozenset(tie.names) for tie in ledger.ties} == true.ties


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_only_what_matters(name: str):
    """Every key is one that its architecture reads, besides the type and the dtype."""
    values = PRESETS[name]
    family = architectures.find(values["model_type"])
    assert set(values) - {"model_type", "dtype"} <= {*family.keys, *family.running}
    assert values.get("dtype", "float32") in BITS


def test_deepseek_v3_with_its_routing_biases():
    """The figure that counts what the file holds: one bias for each of 256 experts in 58 layers."""
    totals = count("deepseek-v3").totals
    assert totals["unique"] + totals["buffers"] == 671_026_419_200
    assert totals["buffers"] == 58 * 256


# -- active parameters ----------------------------------------------------------------------------


def test_active_parameters_of_mixtral():
    """12.9B: two of eight experts, and all the rest."""
    d, inner, layers, vocabulary = 4096, 14_336, 32, 32_000
    attention = 2 * d * d + 2 * d * 1024
    router, norms = 8 * d, 2 * d
    by_hand = 2 * vocabulary * d + d + layers * (attention + router + norms + 2 * 3 * d * inner)
    assert by_hand == 12_879_925_248
    assert count("mixtral-8x7b").totals["active"] == by_hand


def test_active_parameters_of_deepseek_v3():
    """Eight of 256 experts and the shared one in 58 layers; its report says 37B."""
    d, heads, vocabulary = 7168, 128, 129_280
    query, key_value = d * 1536 + 1536 * heads * 192, d * (512 + 64) + 512 * heads * 256
    attention = query + key_value + heads * 128 * d + 1536 + 512
    dense, sparse = 3 * d * 18_432, (8 + 1) * 3 * d * 2048 + 256 * d
    by_hand = 2 * vocabulary * d + d + 61 * (attention + 2 * d) + 3 * dense + 58 * sparse
    assert count("deepseek-v3").totals["active"] == by_hand == 37_552_282_624


@pytest.mark.parametrize(
    ("name", "billions", "without_embedding"),
    [
        ("mixtral-8x22b", "39", False),
        ("phi-3.5-moe", "6.6", False),
        ("qwen1.5-moe-a2.7b", "2.7", False),
        ("olmoe-1b-7b", "1.3", False),
        # The model card of gpt-oss counts the head and leaves the token embedding out.
        ("gpt-oss-20b", "3.61", True),
        ("gpt-oss-120b", "5.13", True),
    ],
)
def test_published_active_parameters(name: str, billions: str, without_embedding: bool):
    ledger = count(name)
    active = ledger.totals["active"] - without_embedding * ledger.by("role")["token_embedding"]
    digits = len(billions.partition(".")[2])
    assert f"{active / 1e9:.{digits}f}" == billions


def test_all_of_a_dense_model_is_active():
    assert count("llama-2-7b").totals["active"] == PUBLISHED["llama-2-7b"]


def test_shared_experts_are_always_active():
    entries = count("deepseek-v3").rolled
    assert {entry.active for entry in entries if "shared_experts" in entry.name} == {None}
    assert {entry.active for entry in entries if ".experts." in entry.name} == {Fraction(8, 256)}
