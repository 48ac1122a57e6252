"""Quantised checkpoints count as the model that they hold: what is packed counts unpacked, scales
are no parameters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from checkpoints import write, write_config
from packings import (
    LAYOUTS,
    LINEARS,
    LLAMA,
    OWN,
    PACKED,
    SIZES,
    Layout,
    Stored,
    bitsandbytes,
    data_bytes,
    exl2,
    exl3,
    folder_of,
    gptq,
    mlx,
    noted,
    weights_of,
)
from tallystick import BadInput, count


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


@pytest.mark.parametrize(("inputs", "words", "dtype"), [(31, 4, "int4"), (3, 1, "int8")])
def test_words_that_the_last_size_does_not_fill(tmp_path: Path, inputs: int, words: int, dtype: str):
    """31 inputs in 4 words of 8: only weight_shape, or the config's bits and the model's own size,
    tells.
    """
    save_file(
        {
            "a.weight_packed": torch.zeros(6, words, dtype=torch.int32),
            "a.weight_scale": torch.zeros(6, 1),
            "a.weight_shape": torch.tensor([6, inputs]),
        },
        tmp_path / "model.safetensors",
    )
    ledger = count(tmp_path / "model.safetensors")
    assert ledger.total == 6 * inputs
    assert ledger.by("dtype")[dtype] == 6 * inputs


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
