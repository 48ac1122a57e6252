"""Quantised checkpoints count as the model that they hold: what is packed counts unpacked, scales
are no parameters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int4Tensor,
    Int4TilePackedTo4dTensor,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)
from transformers import LlamaConfig, LlamaForCausalLM

from checkpoints import write, write_config
from hostile import rewritten, survives
from packings import (
    LAYOUTS,
    LINEARS,
    LLAMA,
    OWN,
    PACKED,
    SIZES,
    VALUES,
    Layout,
    Stored,
    bitsandbytes,
    exl2,
    exl3,
    folder_of,
    gptq,
    mlx,
)
from tallystick import BadInput, Ledger, check, compare, compute, count, fit, memory, ties
from tallystick.cli.main import main
from tallystick.core.dtypes import BITS
from tallystick.formats.safetensors_json import DTYPES
from tallystick.formats.shards import read_checkpoint
from tallystick.sources.checkpoint.values import StoredValues
from tallystick.sources.quantized.detect import find_packed, quantisation_in
from tallystick.sources.torch_module.live_tensors import parts_of


def noted(ledger: Ledger, words: str) -> bool:
    return any(words in note for note in ledger.notes)


def test_the_model_has_the_parameters_that_are_expected_below():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**SIZES))
    assert sum(parameter.numel() for parameter in model.parameters()) == OWN
    assert 2 * sum(out * inputs for out, inputs in LINEARS.values()) == PACKED


@pytest.mark.parametrize("known", [True, False], ids=["known", "of an unknown type"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_packed_weights_count_as_what_they_stand_for(tmp_path: Path, name: str, known: bool):
    layout, dtype, more = LAYOUTS[name]
    path = folder_of(tmp_path, layout, LLAMA if known else {"model_type": "never_heard_of"}, **more)
    ledger = count(path)
    assert ledger.total == OWN
    assert ledger.by("dtype") == {"bfloat16": OWN - PACKED, dtype: PACKED}
    assert not noted(ledger, "integers")
    assert (ledger.mismatches, ledger.architecture) == ({}, "llama" if known else None)
    assert ledger.by("role") == count({"model_type": "llama", **SIZES}).by("role")

    # Stored elements and bytes are those of the tensors, whatever they stand for.
    stored = [one for out, inputs in LINEARS.values() for one in layout(out, inputs).values()] * 2
    sizes = [torch.Size(shape).numel() for _, shape, _ in stored]
    rest = OWN - PACKED
    assert ledger.totals["stored"] == rest + sum(sizes)
    widths = [torch.empty(0, dtype=one).element_size() for one, *_ in stored]
    assert ledger.totals["stored_bytes"] == 2 * rest + sum(map(lambda a, b: a * b, sizes, widths))


def test_what_is_packed_is_said_in_one_line(tmp_path: Path):
    ledger = count(folder_of(tmp_path, gptq(4)))
    assert noted(ledger, "14 weights are packed in int4 (GPTQ): 61,440 elements in 7,680 stored ones")
    assert {entry.name for entry in ledger.entries if "qweight" in entry.name} == {
        f"model.layers.{layer}.{linear}.qweight" for layer in range(2) for linear in LINEARS
    }
    assert ledger.tensors["model.layers.0.mlp.down_proj.qweight"].shape == (64, 96)


def test_words_that_the_last_size_does_not_fill(tmp_path: Path):
    """31 inputs in 4 words of 8: only weight_shape, or the config's bits and the model's own size,
    tells.
    """
    save_file(
        {
            "a.weight_packed": torch.zeros(6, 4, dtype=torch.int32),
            "a.weight_scale": torch.zeros(6, 1),
            "a.weight_shape": torch.tensor([6, 31]),
        },
        tmp_path / "model.safetensors",
    )
    assert count(tmp_path / "model.safetensors").total == 6 * 31


def test_a_shape_that_is_not_read_is_that_of_the_config(tmp_path: Path):
    """As in files that are elsewhere, of which headers alone are fetched: here the note is too long
    to be one.
    """

    def stored(out: int, inputs: int) -> Stored:
        parts = bitsandbytes("nf4")(out, inputs)
        name = "weight.quant_state.bitsandbytes__nf4"
        return {**parts, name: (torch.uint8, (5000,), (parts[name][2] or b"").ljust(5000))}

    known, unknown = (
        folder_of(tmp_path / kind, stored, {**LLAMA, "model_type": kind}) for kind in ("llama", "no_type")
    )
    assert [(count(one).total, count(one).mismatches) for one in (known, unknown)] == [(OWN, {}), (OWN, {})]
    name = "model.layers.0.mlp.down_proj.weight"
    assert [count(one).tensors[name].shape for one in (known, unknown)] == [(64, 96), (64 * 96,)]


def test_layers_of_mlx_with_bits_of_their_own(tmp_path: Path):
    tensors = {f"{name}.{part}": torch.ones(4, 1) for name in ("a", "b") for part in ("scales", "biases")}
    tensors |= {"a.weight": torch.zeros(4, 8, dtype=torch.uint32), "b.weight": torch.zeros(4, 12, dtype=torch.uint32)}
    save_file(tensors, tmp_path / "model.safetensors")
    write_config(tmp_path, {"quantization": {"group_size": 64, "bits": 4, "b": {"group_size": 64, "bits": 6}}})
    assert count(tmp_path).by("dtype") == {"int4": 4 * 64, "int6": 4 * 64}


def test_mlx_without_a_config_is_counted_as_stored(tmp_path: Path):
    """Four bits in groups of 64 look as eight in groups of 32 do."""
    ledger = count(folder_of(tmp_path, mlx(4), None))
    assert ledger.total == OWN - PACKED + PACKED // 8
    assert noted(ledger, "14 tensors hold integers, possibly packed quantised weights: counted as stored elements")


def test_mxfp4_as_gpt_oss_has_it(tmp_path: Path):
    sizes = {
        "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 50, "num_local_experts": 3, "num_experts_per_tok": 2,
    }  # fmt: skip
    config = {"model_type": "gpt_oss", **sizes}
    described = {entry.name: entry.shape for entry in count(config).entries}
    experts = "model.layers.0.mlp.experts."
    assert described[experts + "gate_up_proj"] == (3, 64, 64)
    stored: dict[str, Any] = {name: tuple(map(int, shape)) for name, shape in described.items()}
    for name, rows, groups in (("gate_up_proj", 64, 2), ("down_proj", 64, 1)):
        del stored[experts + name]
        stored[f"{experts}{name}_blocks"], stored[f"{experts}{name}_scales"] = (3, rows, groups, 16), (3, rows, groups)
    dtypes = {name: "U8" for name in stored if name.endswith(("_blocks", "_scales"))}
    write(tmp_path / "model.safetensors", stored, dtype="BF16", dtypes=dtypes)
    write_config(tmp_path, config)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (count(config).total, {})
    assert ledger.by("role") == count(config).by("role")
    assert ledger.totals["active"] == count(config).totals["active"]
    assert ledger.by("dtype")["float4_e2m1fn"] == 3 * 64 * 64 + 3 * 32 * 64
    assert weights_of(ledger) == data_bytes(tmp_path / "model.safetensors")
    expert = (64 * 2 + 64) * (16 + 1) + (64 + 64) * 2  # its blocks and scales, and its biases
    assert weights_of(ledger) - weights_of(ledger, ep=3) == 2 * expert


def test_sizes_that_a_library_fills_up_are_those_of_the_config(tmp_path: Path):
    """EXL2 stores 128 rows of a head of 100; EXL3 fills 64 and 96 up to 128."""
    rest = folder_of(tmp_path / "exl2", LAYOUTS["EXL2"][0])
    tensors = load_file(rest / "model.safetensors")
    del tensors["lm_head.weight"]
    head = {f"lm_head.{name}": torch.zeros(shape, dtype=dtype) for name, (dtype, shape, _) in exl2(128, 64).items()}
    save_file({**tensors, **head}, rest / "model.safetensors")
    filled = folder_of(tmp_path / "exl3", lambda out, inputs: exl3()(-(-out // 128) * 128, -(-inputs // 128) * 128))
    for folder in (rest, filled):
        ledger = count(folder)
        assert (ledger.total, ledger.mismatches) == (OWN, {})
        assert weights_of(ledger) == data_bytes(folder / "model.safetensors")


def saved_by_hqq(folder: Path, *, nested: bool, **said: Any) -> dict[str, dict[str, Any]]:
    """`qmodel.pt` as hqq writes it: a dictionary for each module, how it is packed among its
    tensors or in a `meta`.
    """
    plain = load_file(folder_of(folder, LAYOUTS["HQQ 4"][0]) / "model.safetensors")
    (folder / "model.safetensors").unlink()
    modules: dict[str, dict[str, Any]] = {}
    for name, tensor in plain.items():
        module, _, last = name.rpartition(".")
        values = (
            {"shape": torch.Size(tensor.tolist()), "nbits": 4, "packing": "4bit_u8"}
            if last == "shape"
            else {last: tensor}
        )
        if last not in ("nbits", "group_size", "axis", "packing"):
            modules.setdefault(module, {}).update(values)
    for module, held in modules.items():
        if "W_q" in held:
            held.update(said)
        if "W_q" in held and nested:
            modules[module] = {"W_q": held.pop("W_q"), "meta": held}
    torch.save(modules, folder / "qmodel.pt")
    return modules


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "in a meta"])
def test_what_hqq_pickles_itself(tmp_path: Path, nested: bool):
    modules = saved_by_hqq(tmp_path, nested=nested)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (OWN, {})
    assert noted(ledger, "14 weights are packed in int4 (HQQ)")
    assert not noted(ledger, "left out")
    parts = [one for held in modules.values() for one in (*held.values(), *held.get("meta", {}).values())]
    assert weights_of(ledger) == sum(one.nbytes for one in parts if isinstance(one, torch.Tensor))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"shape": "four"}, "an invalid shape"),
        ({"shape": (3, 5)}, "W_q' holds up to"),
        ({"shape": (-1,)}, "an invalid shape"),
    ],
)
def test_a_pickle_of_hqq_that_cannot_be_true_is_refused(tmp_path: Path, said: dict[str, Any], words: str):
    saved_by_hqq(tmp_path, nested=False, **said)
    with pytest.raises(BadInput, match=words):
        count(tmp_path)


def test_embeddings_of_gemma_are_packed_as_its_layers(tmp_path: Path):
    folder = folder_of(tmp_path, *LAYOUTS["Gemma 4"][:1], **LAYOUTS["Gemma 4"][2])
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.embed_tokens.weight"]
    tensors["model.embed_tokens.embedding_quantized"] = torch.zeros(100, 32, dtype=torch.uint8)
    tensors["model.embed_tokens.embedding_scale"] = torch.zeros(100, 1)
    save_file(tensors, folder / "model.safetensors")
    ledger = count(folder)
    assert (ledger.total, ledger.mismatches) == (OWN, {})
    assert ledger.by("role") == count({"model_type": "llama", **SIZES}).by("role")


def test_floats_of_four_bits_in_signed_bytes(tmp_path: Path):
    """DeepSeek's experts: two values to a byte, and an exponent for 32 of them."""
    shapes = {"a.weight": (64, 48), "a.weight_scale_inv": (64, 3)}
    dtypes = {"a.weight": "I8", "a.weight_scale_inv": "F8_E8M0"}
    ledger = count(write(tmp_path / "model.safetensors", shapes, dtypes=dtypes))
    assert ledger.by("dtype") == {"float4_e2m1fn": 64 * 96}


UNKNOWN: dict[str, tuple[Layout, dict[str, Any]]] = {
    "fouroversix": (lambda out, inputs: {
        "quantized_weight_values": (torch.uint8, (out, inputs // 2), None),
        "quantized_weight_scale_factors": (torch.float8_e4m3fn, (out, inputs // 16), None),
    }, {"quant_method": "fouroversix"}),
    "sinq": (lambda out, inputs: {
        "W_q": (torch.uint8, (out * inputs // 128, 64), None),
        "meta.scale": (torch.float16, (out * inputs // 64, 1), None),
    }, {"quant_method": "sinq", "nbits": 4}),
    "gemma": (LAYOUTS["Gemma 4"][0], {"quant_method": "gemma", "num_bits": 4, "module_quant_configs": {"mlp": {"num_bits": 2}}}),
    "vptq": (LAYOUTS["VPTQ"][0], {"quant_method": "vptq"}),
}  # fmt: skip


@pytest.mark.parametrize("method", UNKNOWN)
def test_a_way_of_packing_that_is_not_known_is_said_and_counted_as_stored(tmp_path: Path, method: str):
    layout, said = UNKNOWN[method]
    ledger = count(folder_of(tmp_path, layout, {"model_type": "never_heard_of"}, quantization_config=said))
    assert noted(
        ledger, f"the config says that weights are quantised by '{method}', but no packed weight is recognised"
    )
    assert noted(ledger, "tensors hold integers, possibly packed quantised weights: counted as stored elements")
    assert weights_of(ledger) == data_bytes(tmp_path / "model.safetensors")


def test_names_of_packed_values_that_a_plain_parameter_has_too(tmp_path: Path):
    """By themselves they are what they are called."""
    shapes = {"h.0.attn.W_q": (8, 8), "vq.codes": (4, 4), "vq.indices": (5,), "h.0.trellis": (2, 2, 2)}
    ledger = count(write(tmp_path / "model.safetensors", shapes))
    assert ledger.total == ledger.totals["stored"] == 64 + 16 + 5 + 8
    assert [entry.called for entry in ledger.entries] == list(ledger.tensors)


# -- torchao --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=False)).to(torch.bfloat16)


TORCHAO = {
    "int8": (lambda model: quantize_(model.model, Int8WeightOnlyConfig()), "int8"),
    "int8, activations too": (lambda model: quantize_(model.model, Int8DynamicActivationInt8WeightConfig()), "int8"),
    "float8": (lambda model: quantize_(model.model, Float8WeightOnlyConfig()), "float8_e4m3fn"),
    "nvfp4": (lambda model: replaced(model, NVFP4Tensor.to_nvfp4), "float4_e2m1fn"),
    "mxfp4": (lambda model: replaced(model, lambda w: MXTensor.to_mx(w, torch.float4_e2m1fn_x2, 32)), "float4_e2m1fn"),
    "int4": (lambda model: replaced(model, int4), "int4"),
    "int4 in tiles": (lambda model: replaced(model, int4_tiles), "int4"),
}


def replaced(model: Any, packed: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Each linear layer's weight packed so, where the kernels that would do it need a GPU."""
    for module in model.model.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight = torch.nn.Parameter(packed(module.weight.detach()), requires_grad=False)


def int4(weight: torch.Tensor) -> torch.Tensor:
    out, inputs = weight.shape
    scales = torch.ones(inputs // 32, out, dtype=torch.bfloat16)
    return Int4Tensor(torch.zeros(out, inputs // 2, dtype=torch.uint8), scales, scales.clone(), [1, 32], weight.shape)


def int4_tiles(weight: torch.Tensor) -> torch.Tensor:
    """Padded to 1024 inputs, as its kernel wants them."""
    out, _ = weight.shape
    values = torch.zeros(out // 8, 1024 // 16 // 8, 32, 4, dtype=torch.int32)
    return Int4TilePackedTo4dTensor(values, torch.ones(32, out, 2, dtype=torch.bfloat16), [1, 32], weight.shape)


@pytest.mark.parametrize("name", TORCHAO)
def test_torchao_in_pickles_and_in_safetensors(tmp_path: Path, llama: LlamaForCausalLM, name: str):
    quantise, dtype = TORCHAO[name]
    model = LlamaForCausalLM(llama.config).to(torch.bfloat16)
    quantise(model)
    for folder in ("pickled", "safetensors"):
        (tmp_path / folder).mkdir()
        write_config(tmp_path / folder, {**LLAMA, "tie_word_embeddings": False})
    torch.save(model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    tensors, metadata = flatten_tensor_state_dict(model.state_dict())  # as transformers' save_pretrained does
    save_file(tensors, tmp_path / "safetensors" / "model.safetensors", metadata=metadata)
    for folder in ("pickled", "safetensors"):
        ledger = count(tmp_path / folder)
        assert (ledger.total, ledger.mismatches) == (OWN, {}), folder
        assert ledger.by("dtype") == {"bfloat16": OWN - PACKED, dtype: PACKED}
        assert ledger.ties == ()
    assert count(tmp_path / "pickled" / "pytorch_model.bin").total == OWN


def test_a_quantised_tensor_under_two_names_is_counted_once(tmp_path: Path):
    packed = int4(torch.zeros(64, 64))
    torch.save({"wte.weight": packed, "lm_head.weight": packed}, tmp_path / "pytorch_model.bin")
    ledger = count(tmp_path / "pytorch_model.bin")
    assert (ledger.total, ledger.totals["by_name"]) == (64 * 64, 2 * 64 * 64)
    assert [tie.names for tie in ledger.ties] == [("wte._weight_qdata", "lm_head._weight_qdata")]


# -- the other answers ----------------------------------------------------------------------------


def test_ties_of_a_packed_folder_are_those_of_its_config(tmp_path: Path):
    for name in ("GPTQ 4", "bitsandbytes nf4", "MLX 4", "FP8 in tiles"):
        layout, _, more = LAYOUTS[name]
        answer = ties(folder_of(tmp_path / name.replace(" ", "_"), layout, **more))
        assert (answer.verdict, answer.groups, answer.problems) == ("consistent", (), ()), name


def test_a_quantised_head_is_not_said_to_differ_from_its_embedding(tmp_path: Path):
    """The config ties them, and one of them is packed: no bytes could be equal."""
    tensors = {"model.embed_tokens.weight": torch.ones(96, 64, dtype=torch.bfloat16)}
    head = {"qweight": ((8, 96), torch.int32), "qzeros": ((2, 12), torch.int32), "scales": ((2, 96), torch.float16)}
    tensors |= {f"lm_head.{name}": torch.ones(shape, dtype=dtype) for name, (shape, dtype) in head.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    write_config(tmp_path, {**LLAMA, "vocab_size": 96, "tie_word_embeddings": True})
    answer = ties(tmp_path)
    assert answer.verdict == "unknown"
    assert answer.problems == ()
    assert [(group.relation, group.why) for group in answer.groups] == [
        ("unknown", "lm_head.qweight is quantised, so its values are not compared")
    ]


@pytest.mark.parametrize("name", ["GPTQ 4", "HQQ 4", "quanto 4", "AQLM 2x8", "EXL2"])
def test_other_answers_take_what_is_packed_for_what_it_stands_for(tmp_path: Path, name: str):
    packed, plain = folder_of(tmp_path / "packed", LAYOUTS[name][0]), {"model_type": "llama", **SIZES}
    assert sum(cause.parameters for cause in compare(plain, packed).causes) == 0
    assert compute(packed, sequence=8).forward_flops == compute(plain, sequence=8).forward_flops
    answer = check("Down projection of a layer: 64 × 96 = 6,144", against=packed)
    assert answer.equations[0].correct
    assert answer.equations[0].matches is not None


# -- memory ---------------------------------------------------------------------------------------


def weights_of(ledger: Ledger, **how: Any) -> int:
    return sum(line.bytes for line in memory(ledger, sequence=8, **how).lines if line.part == "weights")


def data_bytes(file: Path) -> int:
    """Bytes of all tensors in a safetensors file: what follows its header."""
    return file.stat().st_size - 8 - int.from_bytes(file.read_bytes()[:8], "little")


@pytest.mark.parametrize("known", [True, False], ids=["known", "of an unknown type"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_memory_is_what_is_stored_with_the_scales_on_a_line_of_their_own(tmp_path: Path, name: str, known: bool):
    layout, _, more = LAYOUTS[name]
    ledger = count(folder_of(tmp_path, layout, LLAMA if known else {"model_type": "never_heard_of"}, **more))
    beside = sum(
        torch.Size(shape).numel() * torch.empty(0, dtype=dtype).element_size()
        for out, inputs in LINEARS.values()
        for part, (dtype, shape, _) in layout(out, inputs).items()
        if part not in VALUES
    )
    lines = [line for line in memory(ledger, sequence=8).lines if line.part == "weights"]
    assert [line.what for line in lines][1:] == ["scales, zero points and tables of quantised weights"]
    assert [line.bytes for line in lines] == [data_bytes(tmp_path / "model.safetensors") - 2 * beside, 2 * beside]


def test_memory_of_torchao_is_what_its_tensors_hold(tmp_path: Path, llama: LlamaForCausalLM):
    for name, (quantise, _) in TORCHAO.items():
        model = LlamaForCausalLM(llama.config).to(torch.bfloat16)
        quantise(model)
        tensors, metadata = flatten_tensor_state_dict(model.state_dict())
        save_file(tensors, tmp_path / "model.safetensors", metadata=metadata)
        held = sum(part.nbytes for one in model.state_dict().values() for part in parts_of(one).tensors)
        assert weights_of(count(tmp_path / "model.safetensors")) == held, name
        assert weights_of(count(model)) == held, name


def test_fit_takes_what_is_stored(tmp_path: Path):
    ledger = count(folder_of(tmp_path, gptq(4)))
    takes = data_bytes(tmp_path / "model.safetensors") + memory(ledger, sequence=8).total_bytes - weights_of(ledger)
    assert fit(ledger, device=takes, sequence=8).fits
    assert not fit(ledger, device=takes - 1, sequence=8).fits
    assert any("dtype is for unpacked weights" in note for note in fit(ledger, device=10**9, sequence=8).notes)


def test_a_dtype_unpacks_and_says_so(tmp_path: Path):
    ledger = count(folder_of(tmp_path, gptq(4)))
    assert weights_of(ledger, dtype="bfloat16") == 2 * OWN
    plain = count({"model_type": "llama", "dtype": "bfloat16", **SIZES})
    assert weights_of(ledger, dtype="nf4") == weights_of(plain, dtype="nf4")
    said = {dtype: memory(ledger, sequence=8, dtype=dtype).notes for dtype in (None, "bfloat16", "nf4")}
    assert not any("packed" in note for note in said[None])
    assert any("stored packed, but counted unpacked, in bfloat16" in note for note in said["bfloat16"])
    assert any("unpacked and quantised again to nf4" in note for note in said["nf4"])


def test_a_quantiser_leaves_a_packed_head_as_it_is_stored(tmp_path: Path):
    """MLX packs embedding and head too, which nf4 does not touch: their scales stay."""
    tensors = {
        f"{name}.{part}": torch.zeros(64, size, dtype=dtype)
        for name in ("lm_head", "model.layers.0.mlp.up_proj")
        for part, size, dtype in (
            ("weight", 8, torch.uint32),
            ("scales", 2, torch.float16),
            ("biases", 2, torch.float16),
        )
    }
    save_file(tensors, tmp_path / "model.safetensors")
    write_config(tmp_path, {"quantization": {"group_size": 32, "bits": 4}})
    in_nf4 = 2048 + 64 * 4  # half a byte for each, a float32 for 64 of them
    assert weights_of(count(tmp_path), dtype="nf4") == 64 * (8 * 4 + 2 * 2 * 2) + in_nf4


@pytest.mark.parametrize(("name", "scalars"), [("AWQ", 0), ("FP8 with one scale", 14 * 4)])
def test_a_rank_holds_its_share_of_what_is_packed(tmp_path: Path, name: str, scalars: int):
    ledger = count(folder_of(tmp_path, LAYOUTS[name][0]))
    whole = 5 * 64 * 2 + scalars  # on each rank: norms, as in every plan, and single numbers
    assert weights_of(ledger, tp=2) == (data_bytes(tmp_path / "model.safetensors") - whole) // 2 + whole


@cache
def trained_by_peft(targets: tuple[str, ...]) -> int:
    """Parameters of the adapters of rank 3 that PEFT puts beside the unpacked model."""
    how = peft.LoraConfig(r=3, target_modules=list(targets) or "all-linear")
    with torch.device("meta"):
        model = peft.get_peft_model(LlamaForCausalLM(LlamaConfig(**SIZES)), how)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.parametrize("targets", [(), ("q_proj", "down_proj")], ids=["all", "two"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_adapters_beside_packed_weights_are_those_of_peft(tmp_path: Path, name: str, targets: tuple[str, ...]):
    layout, _, more = LAYOUTS[name]
    ledger = count(folder_of(tmp_path, layout, **more))
    answer = memory(ledger, mode="training", sequence=8, lora=3, targets=targets)
    adapters = next(line for line in answer.lines if line.what.startswith("LoRA adapters"))
    assert adapters.bytes == 4 * trained_by_peft(targets)


# -- what is broken -------------------------------------------------------------------------------


def broken(change: Callable[[Stored], object], layout: Layout) -> Layout:
    def stored(out: int, inputs: int) -> Stored:
        good = layout(out, inputs)
        change(good)
        return good

    return stored


def reshaped(name: str, *shape: int) -> Callable[[Stored], object]:
    return lambda stored: stored.update({name: (stored[name][0], shape, None)})


def says(text: str, kind: str = "nf4") -> Callable[[Stored], object]:
    name = f"weight.quant_state.bitsandbytes__{kind}"
    return lambda stored: stored.update({name: (torch.uint8, (len(text),), text.encode())})


@pytest.mark.parametrize(
    ("layout", "change", "words"),
    [
        ("GPTQ 4", reshaped("scales", 2, 7), r"qweight' of shape .* and '.*scales' of shape \(2, 7\) cannot belong"),
        ("GPTQ 4", reshaped("g_idx", 7), r"g_idx' of shape \(7,\) cannot belong to one packed weight"),
        ("GPTQ 4", reshaped("qzeros", 3, 1), "qzeros' of shape"),
        ("GPTQ 4", reshaped("qweight", 7), r"qweight' of shape \(7,\) cannot belong to a packed weight"),
        ("AWQ", reshaped("scales", 0, 0), "cannot belong"),
        ("AWQ gemv_fast", reshaped("scales", 8, 7), "scales' of shape"),
        ("bitsandbytes nf4", reshaped("weight.absmax", 1), "absmax' of shape"),
        ("bitsandbytes nf4", says("{"), "quant_state.bitsandbytes__nf4' holds"),
        ("bitsandbytes nf4", says("[" * 4000), "quant_state.bitsandbytes__nf4' holds"),
        ("bitsandbytes nf4", says('{"shape": [8, 8], "blocksize": 64}'), "packed values, but its quant_state says"),
        ("bitsandbytes nf4", says('{"shape": [-8, -8], "blocksize": 64}'), "gives the shape"),
        ("bitsandbytes nf4", says('{"shape": "8", "blocksize": 64}'), "gives the shape"),
        ("bitsandbytes nf4", lambda stored: stored.pop("weight.absmax"), "absmax' is missing"),
        ("bitsandbytes int8", reshaped("SCB", 5), "SCB' of shape"),
        ("pack-quantized 4", reshaped("weight_scale", 5, 5), "weight_scale' of shape"),
        (
            "pack-quantized 4",
            lambda stored: stored.update(weight_shape=(torch.int64, (99,), b"\x7f" * 792)),
            "weight_shape' says .{60}, which",
        ),
        ("nvfp4-pack-quantized", reshaped("weight_scale", 5, 5), "weight_scale' of shape"),
        ("NVFP4 of ModelOpt", reshaped("weight_scale", 64, 3), "weight_scale' of shape"),
        ("FP8 in tiles", reshaped("weight_scale_inv", 900, 900), "weight_scale_inv' of shape"),
        ("MLX 4", reshaped("biases", 1, 1), "biases' of shape"),
        ("MLX 4", reshaped("scales", 64, 5), "scales' of shape|with scales of shape"),
        ("MLX mxfp4", reshaped("scales", 64, 5), "scales' of shape"),
        ("Metal", reshaped("qbiases", 1, 1), "qbiases' of shape"),
        ("FP-Quant mxfp4", reshaped("scales", 64, 5), "scales' of shape"),
        ("Gemma 4", reshaped("weight_scale", 7, 1), "weight_scale' of shape"),
        ("EETQ", reshaped("weight_scales", 7), "weight_scales' of shape"),
        ("HQQ 4", reshaped("W_q", 3, 32), "W_q' holds up to 192 packed values, but its shape says"),
        ("HQQ 3", reshaped("W_q", 0, 0), "W_q' of shape"),
        ("HQQ 4", lambda stored: stored.update(shape=(torch.int64, (2,), b"\xff" * 16)), "its shape says"),
        ("quanto 4", reshaped("weight._scale", 7, 1), "_scale' of shape"),
        ("AQLM 2x8", reshaped("codebooks", 3, 256, 1, 8), "codebooks' of shape"),
        ("VPTQ", reshaped("perm", 7), "perm' of shape"),
        ("VPTQ", reshaped("indices", 1, 7, 7), "indices' of shape"),
        ("HIGGS 4", reshaped("scales", 7, 2), "scales' of shape"),
        ("HIGGS 4", lambda stored: stored.pop("tables"), "tables' is missing"),
        ("SpQR", reshaped("dense_weights", 7, 7), "dense_weights' of shape"),
        ("EXL2", reshaped("q_scale", 1, 7), "q_scale' of shape"),
        ("EXL3", reshaped("svh", 7), "svh' of shape"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: str, change: Any, words: str
):
    path = folder_of(tmp_path, broken(change, LAYOUTS[layout][0]), **LAYOUTS[layout][2])
    with pytest.raises(BadInput, match=words) as error:
        count(path)
    assert str(error.value).isprintable()
    assert main(["count", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert len(told) < 600 + len(str(tmp_path))


@pytest.mark.parametrize(
    "said", [{"bits": "four", "group_size": 32}, {"bits": 4, "group_size": -1}, {"bits": 99, "group_size": 32}]
)
def test_an_absurd_quantisation_is_refused(tmp_path: Path, said: dict[str, Any]):
    with pytest.raises(BadInput, match="the config's quantization says bits"):
        count(folder_of(tmp_path, mlx(4), quantization=said))


def test_a_quantisation_of_other_bits_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="does not match the config's 8 bits and groups of 32"):
        count(folder_of(tmp_path, mlx(4), quantization={"bits": 8, "group_size": 32}))


@pytest.mark.parametrize(
    "said", ["x", [], 3, {"config_groups": {"a": 1}}, {"bits": None}, {"config_groups": []}], ids=str
)
def test_an_odd_quantization_config_beside_sound_weights_changes_nothing(tmp_path: Path, said: Any):
    assert count(folder_of(tmp_path, gptq(4), quantization_config=said)).total == OWN


@pytest.mark.parametrize(
    "told",
    ["{", "[]", '{"_type": "Int4Tensor"}', '{"_type": "Int4Tensor", "_data": {"shape": [64, -1]}}',
     '{"_type": "Int4Tensor", "_data": {"shape": [640, 64]}}', '{"_type": "Int4Tensor", "_data": {"shape": "x"}}'],
)  # fmt: skip
def test_metadata_of_torchao_that_cannot_be_true_is_refused(tmp_path: Path, told: str):
    tensors = {"a._weight_qdata": torch.zeros(64, 32, dtype=torch.uint8), "a._weight_scale": torch.ones(2, 64)}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"a.weight": told})
    with pytest.raises(BadInput):
        count(tmp_path / "model.safetensors")


def test_names_that_only_look_packed_are_parameters(tmp_path: Path):
    """A model may call a parameter of its own so."""
    shapes = {"logit_scale": (1,), "h.0.time_blocks": (3, 4), "h.0.mlp.scales": (5,), "h.0.weight_packed": (4, 4)}
    ledger = count(write(tmp_path / "model.safetensors", shapes))
    assert ledger.totals["stored"] == 1 + 12 + 5 + 16
    assert ledger.total == 1 + 12 + 16  # scales by themselves are some quantiser's, as they were


# -- whatever a folder may hold -------------------------------------------------------------------

WORDS = {dtype: word for word, dtype in DTYPES.items()}
MOST_DATA = 1 << 20  # bytes of one tensor: what says more is refused by its header


def stored_in(layout: Layout) -> dict[str, Any]:
    """What one layer of a layout is stored as: the format's word for the dtype, the shape, the
    bytes that are noted.
    """
    return {
        f"model.layers.0.mlp.down_proj.{name}": [WORDS[str(dtype)[6:]], shape, (content or b"").decode("latin-1")]
        for name, (dtype, shape, content) in layout(64, 96).items()
    }


def put_stored(path: Path, changed: bytes) -> None:
    """A file of what is stored, where each tensor has as many bytes as it says that it takes."""
    try:
        stored = json.loads(changed)
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in thousands of lists
        stored = None
    header, data = {}, bytearray()
    for name, told in stored.items() if isinstance(stored, dict) else ():
        dtype, shape, note = told if isinstance(told, list) and len(told) == 3 else (told, told, "")
        sizes = shape if isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape) else [0]
        taken = math.prod(sizes) * BITS.get(DTYPES.get(str(dtype), ""), 0) // 8
        taken = taken if taken < MOST_DATA else 0
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + taken]}
        data += str(note).encode("latin-1", "replace").ljust(taken, b"\0")[:taken]
    header_text = json.dumps(header).encode()
    path.write_bytes(len(header_text).to_bytes(8, "little") + header_text + data)


def packed_alone(path: Path, config: dict[str, Any]) -> None:
    """What is packed in a file, without the ledger that is made of it."""
    contents = read_checkpoint(path)
    ((_, header),) = contents.files
    find_packed(header.tensors, quantisation_in(config), header.metadata, StoredValues(contents.files).peek)


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_parts_are_counted_or_refused(tmp_path: Path, name: str):
    layout, _, more = LAYOUTS[name]
    path = tmp_path / "model.safetensors"
    write_config(tmp_path, more)
    read = partial(packed_alone, config=more)
    assert survives(path, rewritten(stored_in(layout), most=8), put=partial(put_stored, path), read=read)


@pytest.mark.parametrize("name", ["GPTQ 4", "AWQ gemv", "MLX 4", "pack-quantized 4"])
def test_another_quantisation_is_counted_or_refused(tmp_path: Path, name: str):
    layout, _, more = LAYOUTS[name]
    folder = folder_of(tmp_path, layout, None)
    groups = {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "type": "int"}, "targets": ["Linear"]}}
    said = {
        "quantization_config": {"bits": 4, "group_size": 32, "quant_method": "any", "config_groups": groups},
        **more,
    }
    survives(folder / "config.json", rewritten(said, most=30), source=folder, read=None)
