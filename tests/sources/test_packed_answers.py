"""Ties, counts and memory of packed weights: what is stored, with its scales."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import peft
import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from checkpoints import write_config
from packings import (
    LAYOUTS,
    LINEARS,
    LLAMA,
    OWN,
    SIZES,
    VALUES,
    data_bytes,
    folder_of,
    gptq,
    weights_of,
)
from tallystick import check, compare, compute, count, fit, memory, ties

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
