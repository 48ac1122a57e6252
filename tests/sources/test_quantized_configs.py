"""A config that says how its weights are quantised, without any weights: the bytes that its files
hold.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import safe_open
from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear

import packings
from quantized_configs import DEEPSEEK, FLOAT, GPT_OSS, LLAMA, MOE, TILES, bytes_of, compressed, quantised
from reference import build
from tallystick import count, memory, reconcile

# -- published files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "experts", "published"),
    [
        (24, 32, 13_761_264_768),  # total_size of openai/gpt-oss-20b's index
        (36, 128, 65_248_815_744),  # and of gpt-oss-120b's
    ],
)
def test_gpt_oss_takes_what_its_files_hold(layers: int, experts: int, published: int):
    ledger = count({**GPT_OSS, "num_hidden_layers": layers, "num_local_experts": experts})
    assert bytes_of(ledger) == published
    weights = [line.bytes for line in memory(ledger).lines if line.part == "weights"]
    assert sum(weights) == published
    assert ledger.total == count({**GPT_OSS, "num_hidden_layers": layers, "num_local_experts": experts},
                                 quantization_config=None).total  # fmt: skip


def test_deepseek_v3_with_its_prediction_layer_takes_what_its_files_hold():
    """163 files of 688,586,727,753 bytes, some 130 of them for each of 91,991 tensors in their
    headers.

    Beside the model: one more block, what joins two vectors, three norms, embedding and head once
    more.
    """
    d, vocabulary = 7168, 129_280
    sixty_one, sixty_two = (bytes_of(count({**DEEPSEEK, "num_hidden_layers": layers})) for layers in (61, 62))
    joins = 2 * d * d * 2 + 3 * d * 2 + 2 * vocabulary * d * 2
    wide_biases = 59 * 256 * 2  # e_score_correction_bias in float32, which the config does not say
    files = sixty_two + joins + wide_biases
    assert sixty_two - sixty_one > 11_000_000_000
    assert 0 < 688_586_727_753 - files < 150 * 91_991


# -- what each library writes ---------------------------------------------------------------------

BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True}

HQQ = {"quant_method": "hqq", "skip_modules": ["lm_head"]}
SAID: dict[str, dict[str, Any]] = {
    "bitsandbytes nf4": {**BNB, "bnb_4bit_quant_type": "nf4"},
    "bitsandbytes nf4, scales quantised too": {**BNB, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
    "bitsandbytes fp4": {**BNB, "bnb_4bit_quant_type": "fp4"},
    "bitsandbytes int8": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "GPTQ 2": {"quant_method": "gptq", "bits": 2, "group_size": 32},
    "GPTQ 3": {"quant_method": "gptq", "bits": 3, "group_size": 32},
    "GPTQ 4": {"quant_method": "gptq", "bits": 4, "group_size": 32},
    "GPTQ 8": {"quant_method": "gptq", "bits": 8, "group_size": 32},
    "AWQ": {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"},
    "pack-quantized 4": compressed("pack-quantized"),
    "pack-quantized 3": compressed("pack-quantized", num_bits=3),
    "pack-quantized with zero points": compressed("pack-quantized", symmetric=False),
    "nvfp4-pack-quantized": {
        **compressed("nvfp4-pack-quantized"),
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "input_activations": {"num_bits": 4, "dynamic": "local"},
                "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            }
        },
    },
    "mxfp4-pack-quantized": compressed("mxfp4-pack-quantized", type="float"),
    "NVFP4 of ModelOpt": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
    "float-quantized": compressed("float-quantized", strategy="channel", **FLOAT),
    "FP8 in tiles": {**TILES, "weight_block_size": [32, 32]},
    "BitNet": {"quant_method": "bitnet"},
    "GPTQ of AutoRound": {
        "quant_method": "auto-round",
        "bits": 4,
        "group_size": 32,
        "packing_format": "auto_round:auto_gptq",
    },
    "Metal": {"quant_method": "metal", "group_size": 32, "bits": 4},
    "EETQ": {"quant_method": "eetq"},
    "HQQ 1": {**HQQ, "quant_config": {"weight_quant_params": {"nbits": 1, "group_size": 32, "axis": 1}}},
    "HQQ 3": {**HQQ, "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 32, "axis": 1}}},
    "HQQ 4": {**HQQ, "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 32, "axis": 1}}},
    "HQQ 8": {**HQQ, "quant_config": {"weight_quant_params": {"nbits": 8, "group_size": 32, "axis": 1}}},
    "quanto 8": {"quant_method": "quanto", "weights": "int8"},
    "quanto float8": {"quant_method": "quanto", "weights": "float8"},
}
# What a library notes in words, or keeps of activations: a few bytes for each weight, which no
# config says.
NOTED = (".bitsandbytes__nf4", ".bitsandbytes__fp4", ".shape", ".nbits", ".group_size", ".axis", ".packing")
OF_QUANTO = (".input_scale", ".output_scale")
# Scales in another dtype than today's layout of the drawn folder has.
WIDER = {"float-quantized": 2}


def stored_in(folder: Path, noted: tuple[str, ...]) -> int:
    """Bytes of the tensors in a folder, without what is noted."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no dictionary
    return sum(tensor.nbytes for name, tensor in held.items() if not name.endswith(noted))


@pytest.mark.parametrize("name", SAID)
def test_a_config_alone_takes_what_the_library_stores(tmp_path: Path, name: str):
    layout, dtype, _ = {**packings.LAYOUTS, "GPTQ of AutoRound": (packings.gptq(4, order=False), "int4", {})}[name]
    folder = packings.folder_of(tmp_path, layout)
    ledger = quantised(SAID[name])
    scales = sum(math.prod(shape[:1]) for shape in packings.LINEARS.values()) * 2
    assert bytes_of(ledger) + WIDER.get(name, 0) * scales == stored_in(
        folder, NOTED + OF_QUANTO * name.startswith("quanto")
    )
    assert ledger.total == packings.OWN
    assert ledger.by("dtype") == {"bfloat16": packings.OWN - packings.PACKED, dtype: packings.PACKED}
    assert sum("quantization_config (" in note for note in ledger.notes) == 1


@pytest.mark.parametrize(
    "name",
    ["bitsandbytes nf4", "GPTQ 4", "AWQ", "BitNet", "GPTQ of AutoRound", "EETQ", "HQQ 4", "quanto 8"],
)
def test_experts_that_are_no_linear_layers_are_not_packed(name: str):
    values = {**GPT_OSS, "num_hidden_layers": 2, "vocab_size": 100}
    modules = build({**values, "quantization_config": None}).named_modules()
    linear = {f"{module}.weight" for module, one in modules if isinstance(one, torch.nn.Linear)}
    ledger = count({**values, "quantization_config": SAID[name]})
    packed = {entry.name for entry in ledger.entries if entry.packed is not None and not entry.buffer}
    assert packed == linear - {"lm_head.weight"}


@pytest.mark.parametrize(("dynamic", "scales"), [(False, 14), (True, 0)])
def test_each_matrix_has_the_scale_of_its_inputs_where_it_is_fixed(dynamic: bool, scales: int):
    """compressed-tensors 0.20: `input_scale`, one value, unless it is found as the model runs."""
    config = compressed("float-quantized", strategy="channel", **FLOAT)
    (group,) = config["config_groups"].values()
    inputs = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": dynamic}
    scaled = {**config, "config_groups": {"group_0": {**group, "input_activations": inputs}}}
    assert bytes_of(quantised(scaled)) - bytes_of(quantised(config)) == scales * 2


def test_mlx_packs_embedding_and_head_too():
    """mlx-lm: each module that can be, which is 32-bit words with a scale and a bias for each 32 of
    a row.
    """
    ledger = count({**LLAMA, "quantization": {"group_size": 32, "bits": 4}, "quantization_config": {"group_size": 32, "bits": 4}})  # fmt: skip
    matrices = packings.PACKED + 2 * 100 * 64
    assert bytes_of(ledger) == matrices // 2 + matrices // 32 * 4 + 2 * (packings.OWN - matrices)


@pytest.mark.parametrize(("mode", "bits", "group"), [("mxfp4", 4, 32), ("nvfp4", 4, 16), ("mxfp8", 8, 32)])
def test_floats_of_mlx_have_a_byte_for_each_group(mode: str, bits: int, group: int):
    """MLX 0.32, mlx.core.quantize: no biases; and a module may have a mode of its own."""
    told = {
        "bits": bits,
        "group_size": group,
        "mode": mode,
        "model.embed_tokens": {"bits": 8, "group_size": 32},
        "lm_head": False,
    }
    matrices, table = packings.PACKED, 100 * 64
    packed = matrices * bits // 8 + matrices // group + table + table // 32 * 4
    assert bytes_of(count({**LLAMA, "quantization": told})) == packed + 2 * (packings.OWN - matrices - table)


# -- what transformers and torchao make of a model ------------------------------------------------

SMALL = {**LLAMA, "hidden_size": 256, "intermediate_size": 320, "num_attention_heads": 4}

V4 = {
    "model_type": "deepseek_v4", "hidden_size": 256, "moe_intermediate_size": 128, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100, "dtype": "bfloat16",
    "q_lora_rank": 128, "o_lora_rank": 64, "o_groups": 2, "head_dim": 64, "qk_rope_head_dim": 32, "tie_word_embeddings": False,
    "expert_dtype": "fp4",
}  # fmt: skip


def held(model: torch.nn.Module) -> int:
    """Bytes of what files of a model hold."""
    return sum(tensor.nbytes for tensor in model.state_dict().values())


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (SMALL, TILES),
        (SMALL, {**TILES, "modules_to_not_convert": ["lm_head", "model.layers.1.mlp", "down_proj"]}),
        (SMALL, {**TILES, "modules_to_not_convert": ["model.layers.0"]}),  # and so the head is not left
        ({**SMALL, "tie_word_embeddings": True}, TILES),
        (SMALL, {**TILES, "weight_block_size": None}),
        (SMALL, {**TILES, "scale_fmt": "ue8m0"}),
        (MOE, TILES),
        (MOE, {**TILES, "modules_to_not_convert": ["lm_head", "model.layers.2.mlp.experts"]}),
        (V4, {**TILES, "scale_fmt": "ue8m0"}),
    ],
)
def test_fp8_is_what_transformers_makes_of_the_model(values: dict[str, Any], told: dict[str, Any]):
    config = transformers.FineGrainedFP8Config(
        **{key: one for key, one in told.items() if key not in ("quant_method", "fmt")}
    )
    config.expert_dtype = values.get("expert_dtype")
    model = build(values).to(torch.bfloat16)
    kept = transformers.quantizers.base.HfQuantizer.get_modules_to_not_convert(model, config.modules_to_not_convert)
    replace_with_fp8_linear(model, kept, config, pre_quantized=True)
    tied = sum(model.lm_head.weight.nbytes for _ in [0] if values["tie_word_embeddings"])
    ledger = count({**values, "quantization_config": told})
    wide = sum(
        6 * t.numel() for t in model.state_dict().values() if t.dtype == torch.int64
    )  # tables of V4, here in 16 bits
    assert bytes_of(ledger) == held(model.to("meta")) - tied - wide


def test_bitnet_is_what_transformers_makes_of_the_model():
    from transformers.integrations.bitnet import replace_with_bitnet_linear  # imports torch's compiler

    model = build(SMALL).to(torch.bfloat16)
    with torch.device("meta"):
        replace_with_bitnet_linear(model, ["lm_head"], transformers.BitNetQuantConfig())
    assert bytes_of(quantised({"quant_method": "bitnet"}, **SMALL)) == held(model)


@pytest.mark.parametrize(
    ("kind", "said"),
    [(Int8WeightOnlyConfig, "Int8WeightOnlyConfig"), (Float8WeightOnlyConfig, "Float8WeightOnlyConfig")],
)
def test_torchao_is_what_torchao_makes_of_the_model(kind: Any, said: str):
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**packings.SIZES)).to(torch.bfloat16)
    quantize_(model, kind(), lambda module, name: isinstance(module, torch.nn.Linear) and name != "lm_head")
    true = 0
    for tensor in model.state_dict().values():
        parts = [tensor]
        if hasattr(tensor, "__tensor_flatten__"):
            parts = [part for name in tensor.__tensor_flatten__()[0] if (part := getattr(tensor, name)) is not None]
        true += sum(part.nbytes for part in parts)
    told = {"quant_method": "torchao", "quant_type": {"default": {"_type": said, "_data": {}}}}
    assert bytes_of(quantised(told)) == true


# -- dtypes ---------------------------------------------------------------------------------------


def test_no_dtype_is_said():
    notes = count({key: value for key, value in LLAMA.items() if key != "dtype"}).notes
    assert any("states no dtype: assumed float32; change it with" in note for note in notes)
    assert not any("no dtype" in note for note in count(LLAMA).notes)


def test_a_quantised_model_without_a_dtype_computes_in_16_bits():
    assert count(GPT_OSS).by("dtype")["bfloat16"] > 0
    told = {key: value for key, value in LLAMA.items() if key != "dtype"}
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    assert count({**told, "quantization_config": gptq}).by("dtype")["float16"] == packings.OWN - packings.PACKED


def test_transformers_builds_in_the_dtype_of_the_language_part():
    text = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
            "num_key_value_heads": 2, "vocab_size": 100, "dtype": "bfloat16", "model_type": "qwen3_vl_text"}  # fmt: skip
    vision = {"hidden_size": 32, "depth": 1, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64,
              "model_type": "qwen3_vl", "deepstack_visual_indexes": [0]}  # fmt: skip
    ledger = count({"model_type": "qwen3_vl", "text_config": text, "vision_config": vision})
    assert set(ledger.by("dtype")) == {"bfloat16"}
    assert ledger.totals["bytes"] == 2 * ledger.total


def test_quantisation_may_be_taken_away():
    assert quantised(TILES).total == count(LLAMA).total
    plain = count({**LLAMA, "quantization_config": TILES}, quantization_config=None)
    assert (plain.totals["bytes"], plain.stored) == (count(LLAMA).totals["bytes"], None)


def test_reconcile_speaks_of_no_files_where_there_are_none():
    """The routing biases alone are what DeepSeek-V3's count of 671,026,419,200 adds; the scales
    have a line of their own.
    """
    ledger = count(DEEPSEEK)
    assert ledger.totals["buffers"] == 58 * 256 + 40_838_232  # scales, by the headers of its files
    (answer,) = reconcile(ledger, "671,026,419,200").explanations[:1]
    assert [step.convention for step in answer.steps] == ["buffers"]


# -- absent files, and ranks ----------------------------------------------------------------------


def test_pasted_and_absent_weights_take_the_same(tmp_path: Path):
    """A folder whose files of weights are pointers alone, and the config in a dictionary."""
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "quantization_config": TILES}))
    size = bytes_of(quantised(TILES))
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize {size + 500}\n"
    (tmp_path / "model.safetensors").write_text(pointer)
    ledger = count(tmp_path)
    assert bytes_of(ledger) == size
    assert not any("more than the config's model" in note for note in ledger.notes)


def test_a_rank_holds_its_share():
    whole, half = (memory(count(GPT_OSS), tp=ranks) for ranks in (1, 2))
    weights = [sum(line.bytes for line in one.lines if line.part == "weights") for one in (whole, half)]
    assert weights[1] == pytest.approx(weights[0] / 2, rel=0.01)
