"""Parameters and bytes of the presets, as they were published."""

from __future__ import annotations

from tallystick.core.ledger import Ledger
from tallystick.presets import PRESETS
from tallystick.sources.configs.config import ledger_from_config

# Elements of distinct tensors, from model cards, from the sizes of published weights, and from the
# papers.
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
    # Half of the published files' bytes, which are below.
    "llama-3.3-70b": 70_553_706_496,
    "mistral-7b-v0.3": 7_248_023_552,
    # Remembered of the hub's pages, and not found again; the model that transformers builds has as
    # many.
    "phi-4-mini": 3_836_021_760,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-coder-480b-a35b": 480_154_875_392,
    "olmo-3-7b": 7_298_011_136,
    "olmo-3-32b": 32_233_522_176,
    "llama-4-scout": 108_641_793_536,
    "llama-4-maverick": 401_583_781_376,
    "gemma-3-4b": 4_300_079_472,
    "gemma-3-12b": 12_187_325_040,
    "gemma-3-27b": 27_432_406_640,
    "nemotron-3-nano-30b-a3b": 31_577_937_344,
    "deepseek-r1": 671_026_404_352,
}

# Published rounded, in billions: model cards. Layers for multi-token prediction are not among them.
ROUNDED = {
    "qwen3-next-80b-a3b": ("80", "3"),
    "qwen3.5-27b": ("27", "27"),
    "qwen3.5-35b-a3b": ("35", "3"),
    "qwen3.5-122b-a10b": ("122", "10"),
    "qwen3.5-397b-a17b": ("397", "17"),
    "gemma-4-26b-a4b": ("26", "4"),
    "gemma-4-31b": ("31", "31"),
    "glm-4.5-air": ("106", "12"),
    "glm-5": ("744", "40"),
    "minimax-m2.5": ("230", "10"),
    "deepseek-v3.2": ("671", "37"),
    "deepseek-v4-flash": ("284", "13"),
    "deepseek-v4-pro": ("1600", "49"),
    "kimi-k2": ("1000", "32"),
    "devstral-small-2-24b": ("24", "24"),
    # Brown et al. 2020, table 2.1. Devlin et al. 2018, section 3, with a pooler and no head.
    "gpt3-125m": ("0.125", "0.125"),
    "gpt3-350m": ("0.350", "0.350"),
    "gpt3-760m": ("0.760", "0.760"),
    "gpt3-1.3b": ("1.3", "1.3"),
    "gpt3-2.7b": ("2.7", "2.7"),
    "gpt3-6.7b": ("6.7", "6.7"),
    "gpt3-13b": ("13.0", "13.0"),
    "gpt3-175b": ("175.0", "175.0"),
    "bert-base-uncased": ("0.110", "0.110"),
    "bert-base-cased": ("0.110", "0.110"),
    "bert-large-uncased": ("0.340", "0.340"),
    "bert-large-cased": ("0.340", "0.340"),
}

# Bytes of the published files: total_size in the index of the safetensors, or as many in quotations
# of it.
BYTES = {
    "llama-3-8b": 16_060_522_496,
    "llama-3-70b": 141_107_412_992,
    "llama-3.1-8b": 16_060_522_496,
    "llama-3.1-70b": 141_107_412_992,
    "llama-3.1-405b": 811_706_777_600,
    "llama-3.3-70b": 141_107_412_992,
    "mistral-7b": 14_483_464_192,
    "mistral-7b-v0.3": 14_496_047_104,
    "mistral-nemo-12b": 24_495_564_800,
    "mixtral-8x7b": 93_405_585_408,
    "mixtral-8x22b": 281_241_268_224,
    "qwen2.5-3b": 6_171_877_376,
    "qwen2.5-7b": 15_231_233_024,
    "qwen2.5-14b": 29_540_067_328,
    "qwen2.5-32b": 65_527_752_704,
    "qwen2.5-72b": 145_412_407_296,
    "qwen1.5-moe-a2.7b": 28_631_568_384,
    "qwen3-4b": 8_044_936_192,
    "qwen3-8b": 16_381_470_720,
    "qwen3-14b": 29_536_614_400,
    "qwen3-32b": 65_524_246_528,
    "gemma-2-2b": 10_457_367_552,
    "phi-2": 5_559_367_680,
    "phi-3-mini": 7_642_159_104,
    "phi-4": 29_319_014_400,
    "olmo-2-7b": 4 * 7_298_617_344,  # the hub's count by dtype: F32
    "olmoe-1b-7b": 2 * 6_919_161_856,  # headers in BF16
    "bloom": 352_494_542_848,
    "smollm3-3b": 6_150_197_248,
    "deepseek-v2-lite": 31_412_968_448,
    "gpt-oss-20b": 13_761_264_768,
    "gpt-oss-120b": 65_248_815_744,
}
# Of others, the billions of bytes that people say of their files; no layers for multi-token
# prediction.
ABOUT = {
    "command-r": 70.0,  # float16, by transformers' documentation
    "glm-4-9b": 18.8,
    "phi-3.5-moe": 83.7,  # "84GB bf16", by a user
    "starcoder2-7b": 14.3,
    "deepseek-v3": 673.2,  # 688.6 with the layer that predicts a token further: tests/sources/test_quantized_configs.py
    "deepseek-v4-flash": 155.6,  # "160GB download" with that layer
}

# Rae et al. 2021, table 1, and Hoffmann et al. 2022, table 4, each rounded as there.
DEEPMIND = {
    "gopher-44m": "44M", "gopher-117m": "117M", "gopher-417m": "417M", "gopher-1.4b": "1.4B", "gopher-7.1b": "7.1B",
    "gopher-280b": "280B", "chinchilla-70b": "70B",
}  # fmt: skip
# Elements of the published weights; test_t5.py compares the type with transformers.
ENCODER_DECODERS = {
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344,
}


def count(name: str) -> Ledger:
    return ledger_from_config(PRESETS[name], {}, source=name, kind="preset")
