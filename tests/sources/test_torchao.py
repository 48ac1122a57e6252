"""Weights that torchao packed, as it saves them, held against its own tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
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

from checkpoints import write_config
from packings import (
    LLAMA,
    OWN,
    PACKED,
    SIZES,
    weights_of,
)
from tallystick import count
from tallystick.sources.torch_module.live_tensors import parts_of

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


def test_memory_of_torchao_is_what_its_tensors_hold(tmp_path: Path, llama: LlamaForCausalLM):
    for name, (quantise, _) in TORCHAO.items():
        model = LlamaForCausalLM(llama.config).to(torch.bfloat16)
        quantise(model)
        tensors, metadata = flatten_tensor_state_dict(model.state_dict())
        save_file(tensors, tmp_path / "model.safetensors", metadata=metadata)
        held = sum(part.nbytes for one in model.state_dict().values() for part in parts_of(one).tensors)
        assert weights_of(count(tmp_path / "model.safetensors")) == held, name
        assert weights_of(count(model)) == held, name
