"""A tiny Llama packed as each library packs it: what it stores for a linear layer, and a folder of
such layers.

Built from the layouts that each library documents; their shapes are those that bitsandbytes 0.50,
compressed-tensors 0.20, MLX 0.32, torchao 0.18, hqq 0.2.8, optimum-quanto 0.2.7, aqlm 1.1.7, vptq
0.0.5 and transformers 5.23 (BitNet, EETQ, FBGEMM, Gemma, HIGGS, Metal) wrote for such a Llama, and
for GPTQ, AWQ, EXL2, EXL3, FP-Quant and SpQR those in the sources of AutoGPTQ 0.7, AutoAWQ 0.2,
exllamav2 0.3, exllamav3, fp_quant and spqr_quant 0.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from checkpoints import write_config
from tallystick import Ledger, memory

SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 100,
}  # fmt: skip
LLAMA = {"model_type": "llama", "dtype": "bfloat16", **SIZES}
LINEARS = {
    "self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
    "self_attn.o_proj": (64, 64), "mlp.gate_proj": (96, 64), "mlp.up_proj": (96, 64), "mlp.down_proj": (64, 96),
}  # fmt: skip
OWN = 74_560  # sum(p.numel() for p in LlamaForCausalLM(LlamaConfig(**SIZES)).parameters())
PACKED = 61_440  # of them in LINEARS, twice

# What a library stores for a linear layer of so many outputs and inputs: (dtype, shape, bytes or
# None) by name.
Stored = dict[str, tuple[torch.dtype, tuple[int, ...], bytes | None]]
Layout = Callable[[int, int], Stored]

# The parts that hold the values; the others are beside them.
VALUES = ("weight", "qweight", "weight_packed", "W_q", "weight._data", "weight._data._data", "codes", "indices",
          "dense_weights", "q_weight", "trellis")  # fmt: skip


def bitsandbytes(kind: str, *, nested: bool = False, storage: torch.dtype = torch.uint8) -> Layout:
    def stored(out: int, inputs: int) -> Stored:
        state = json.dumps({"quant_type": kind, "blocksize": 64, "dtype": "bfloat16", "shape": [out, inputs]}).encode()
        wide = torch.empty(0, dtype=storage).element_size()
        return {
            "weight": (storage, (out * inputs // 2 // wide, 1), None),
            "weight.absmax": (torch.uint8 if nested else torch.float32, (out * inputs // 64,), None),
            "weight.quant_map": (torch.float32, (16,), None),
            **({"weight.nested_absmax": (torch.float32, (1,), None)} if nested else {}),
            **({"weight.nested_quant_map": (torch.float32, (256,), None)} if nested else {}),
            f"weight.quant_state.bitsandbytes__{kind}": (torch.uint8, (len(state),), state),
        }

    return stored


def llm_int8(out: int, inputs: int) -> Stored:
    return {
        "weight": (torch.int8, (out, inputs), None),
        "SCB": (torch.float32, (out,), None),
        "weight_format": (torch.uint8, (), None),
    }


def gptq(bits: int, *, zeros: bool = True, order: bool = True) -> Layout:
    return lambda out, inputs: {
        "qweight": (torch.int32, (inputs * bits // 32, out), None),
        **({"qzeros": (torch.int32, (inputs // 32, out * bits // 32), None)} if zeros else {}),
        "scales": (torch.float16, (inputs // 32, out), None),
        **({"g_idx": (torch.int32, (inputs,), None)} if order else {}),
    }


def awq(out: int, inputs: int) -> Stored:
    return {
        "qweight": (torch.int32, (inputs, out // 8), None),
        "qzeros": (torch.int32, (inputs // 32, out // 8), None),
        "scales": (torch.float16, (inputs // 32, out), None),
    }


def awq_gemv(out: int, inputs: int) -> Stored:
    return {
        "qweight": (torch.int32, (out, inputs // 8), None),
        "qzeros": (torch.int32, (out, 1), None),
        "scales": (torch.float16, (out, 8), None),
    }


def awq_fast(out: int, inputs: int) -> Stored:
    scales = (torch.float16, (64, out), None)
    return {"qweight": (torch.int16, (out // 4, inputs), None), "scales": scales, "qzeros": scales}


def awq_marlin(out: int, inputs: int) -> Stored:
    return {
        "qweight": (torch.int32, (inputs // 16, out * 2), None),
        "scales": (torch.float16, (inputs // 32, out), None),
    }


def pack_quantized(bits: int, *, zeros: bool = False) -> Layout:
    def stored(out: int, inputs: int) -> Stored:
        shape = torch.tensor([out, inputs]).numpy().tobytes()
        return {
            "weight_packed": (torch.int32, (out, -(-inputs * bits // 32)), None),
            "weight_scale": (torch.bfloat16, (out, inputs // 32), None),
            "weight_shape": (torch.int64, (2,), shape),
            **({"weight_zero_point": (torch.int32, (out * bits // 32, inputs // 32), None)} if zeros else {}),
        }

    return stored


def in_bytes(bits: int, scale: torch.dtype, group: int, *, name: str = "weight_packed", beside: str = "") -> Layout:
    """Floats of 4 or 6 bits."""
    return lambda out, inputs: {
        name: (torch.uint8, (out, inputs * bits // 8), None),
        "weight_scale": (scale, (out, inputs // group), None),
        **({beside: (torch.float32, (1,), None), "input_scale": (torch.float32, (1,), None)} if beside else {}),
    }


def fp8(scale: str, shape: Callable[[int, int], tuple[int, ...]]) -> Layout:
    return lambda out, inputs: {
        "weight": (torch.float8_e4m3fn, (out, inputs), None),
        scale: (torch.float32, shape(out, inputs), None),
    }


def mlx(bits: int, group: int = 32) -> Layout:
    return lambda out, inputs: {
        "weight": (torch.uint32, (out, inputs * bits // 32), None),
        "scales": (torch.bfloat16, (out, inputs // group), None),
        "biases": (torch.bfloat16, (out, inputs // group), None),
    }


def mlx_floats(bits: int, group: int) -> Layout:
    return lambda out, inputs: {
        "weight": (torch.uint32, (out, inputs * bits // 32), None),
        "scales": (torch.uint8, (out, inputs // group), None),
    }


def bitnet(out: int, inputs: int) -> Stored:
    return {"weight": (torch.uint8, (out // 4, inputs), None), "weight_scale": (torch.bfloat16, (1,), None)}


def metal(out: int, inputs: int) -> Stored:
    return {{"biases": "qbiases"}.get(name, name): part for name, part in mlx(4)(out, inputs).items()}


def fp_quant(group: int) -> Layout:
    return lambda out, inputs: {
        "qweight": (torch.uint8, (out, inputs // 2), None),
        "scales": (torch.uint8, (out, inputs // group), None),
        "weight_global_scale": (torch.bfloat16, (1,), None),
        "act_global_scale": (torch.bfloat16, (1,), None),
        "forward_hadamard_matrix": (torch.bfloat16, (16, 16), None),
        "backward_hadamard_matrix": (torch.bfloat16, (16, 16), None),
    }


def gemma(bits: int) -> Layout:
    return lambda out, inputs: {
        "weight": (torch.int8 if bits == 8 else torch.uint8, (out, inputs * bits // 8), None),
        "weight_scale": (torch.float32, (out, 1), None),
        "input_activation_scale": (torch.float32, (), None),
        "output_activation_scale": (torch.float32, (), None),
    }


def eetq(out: int, inputs: int) -> Stored:
    return {"weight": (torch.int8, (inputs, out), None), "weight_scales": (torch.float16, (out,), None)}


def hqq(bits: int, *, noted: bool = True) -> Layout:
    """Groups of 32, ten rows of 3 bits to 32 of them."""

    def stored(out: int, inputs: int) -> Stored:
        groups = out * inputs // 32
        values = (torch.int32, (-(-groups // 10), 32)) if bits == 3 else (torch.uint8, (groups * bits // 8, 32))
        notes = {"shape": (torch.int64, [out, inputs]), "nbits": (torch.int32, [bits]), "group_size": (torch.int32, [32]),
                 "axis": (torch.int32, [1]), "packing": (torch.uint8, [*b"some_u8"])}  # fmt: skip
        return {
            "W_q": (*values, None),
            "scale": (torch.bfloat16, (groups, 1), None),
            "zero": (torch.bfloat16, (groups, 1), None),
            **{
                name: (dtype, (len(said),), torch.tensor(said, dtype=dtype).numpy().tobytes())
                for name, (dtype, said) in notes.items()
                if noted or name not in ("shape", "nbits")
            },
        }

    return stored


def quanto(bits: int, dtype: torch.dtype = torch.int8) -> Layout:
    """Groups of 32 below 8 bits."""

    def stored(out: int, inputs: int) -> Stored:
        rows = out if bits == 8 else out * inputs // 32
        values = {"weight._data": (dtype, (out, inputs), None)}
        packed = {"weight._data._data": (torch.uint8, (rows * bits // 8, 32), None),
                  "weight._shift": (torch.bfloat16, (rows, 1), None)}  # fmt: skip
        return {
            **(values if bits == 8 else packed),
            "weight._scale": (torch.bfloat16, (rows, 1), None),
            "input_scale": (torch.bfloat16, (), None),
            "output_scale": (torch.bfloat16, (), None),
        }

    return stored


def aqlm(books: int, codes: torch.dtype) -> Layout:
    entries = 256 if codes == torch.int8 else 65536
    return lambda out, inputs: {
        "codes": (codes, (out, inputs // 8, books), None),
        "codebooks": (torch.float16, (books, entries, 1, 8), None),
        "scales": (torch.float16, (out, 1, 1, 1), None),
    }


def vptq(out: int, inputs: int) -> Stored:
    """Vectors of 6, which 64 and 32 outputs do not fill."""
    return {
        "indices": (torch.int32, (1, -(-out // 6), inputs // 2), None),
        "centroids.weight": (torch.bfloat16, (1, 256 * 6), None),
        "res_centroids.weight": (torch.bfloat16, (1, 256 * 6), None),
        "perm": (torch.int16, (inputs,), None),
        "weight_scale": (torch.bfloat16, (inputs,), None),
        "weight_bias": (torch.bfloat16, (inputs,), None),
    }


def higgs(bits: int) -> Layout:
    return lambda out, inputs: {
        "weight": (torch.int16, (out * bits // 16, inputs), None),
        "scales": (torch.bfloat16, (out, inputs // 32), None),
        "tables": (torch.bfloat16, (2**bits,), None),
        "tables2": (torch.bfloat16, (2**bits, 2**bits, 2), None),
    }


def spqr(*, by_rows: bool) -> Layout:
    return lambda out, inputs: {
        "dense_weights": (torch.int64, (out * inputs // 16,), None),
        "row_offsets": (torch.int32, (out + 1 if by_rows else out // 2 + 3,), None),
        "col_vals": (torch.int32, (7,), None),
        "in_perm": (torch.int32, (inputs // 2,), None),
    }


def exl2(out: int, inputs: int) -> Stored:
    """32 inputs in 6 bits, the others in 4, in groups of 32."""
    groups = inputs // 32
    return {
        "q_weight": (torch.int32, (6 + 4 * (groups - 1), out), None),
        "q_scale": (torch.int32, (groups, out // 8), None),
        "q_scale_max": (torch.float16, (groups,), None),
        "q_groups": (torch.int16, (2 * groups,), None),
        "q_invperm": (torch.int32, (inputs,), None),
    }


def exl3(*, packed: bool = False) -> Layout:
    def stored(out: int, inputs: int) -> Stored:
        signs: Stored = {"su": (torch.int16, (inputs // 16,), None), "sv": (torch.int16, (out // 16,), None)}
        if not packed:
            signs = {"suh": (torch.float16, (inputs,), None), "svh": (torch.float16, (out,), None)}
        return {"trellis": (torch.int16, (inputs // 16, out // 16, 48), None), **signs, "mcg": (torch.int32, (), None)}

    return stored


def folder_of(folder: Path, layout: Layout, config: dict[str, Any] | None = LLAMA, **more: Any) -> Path:
    """A Llama whose linear layers are stored so; embedding, head and norms as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: torch.zeros(100, 64, dtype=torch.bfloat16) for name in ("model.embed_tokens.weight", "lm_head.weight")
    }
    tensors["lm_head.weight"] += 1
    tensors["model.norm.weight"] = torch.ones(64, dtype=torch.bfloat16)
    for layer in range(2):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{norm}.weight"] = torch.ones(64, dtype=torch.bfloat16)
        for linear, (out, inputs) in LINEARS.items():
            for name, (dtype, shape, content) in layout(out, inputs).items():
                tensor = torch.zeros(shape, dtype=dtype)
                if content is not None:
                    tensor = torch.frombuffer(bytearray(content), dtype=dtype)
                tensors[f"model.layers.{layer}.{linear}.{name}"] = tensor
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if config is not None:
        write_config(folder, {**config, **more})
    return folder


IN_MLX = {"quantization": {"group_size": 32, "bits": 4}}
LAYOUTS: dict[str, tuple[Layout, str, dict[str, Any]]] = {
    "bitsandbytes nf4": (bitsandbytes("nf4"), "nf4", {}),
    "bitsandbytes nf4, scales quantised too": (bitsandbytes("nf4", nested=True), "nf4", {}),
    "bitsandbytes nf4 in bfloat16": (bitsandbytes("nf4", storage=torch.bfloat16), "nf4", {}),
    "bitsandbytes fp4": (bitsandbytes("fp4"), "fp4", {}),
    "bitsandbytes int8": (llm_int8, "int8", {}),
    "GPTQ 2": (gptq(2), "int2", {}),
    "GPTQ 3": (gptq(3), "int3", {}),
    "GPTQ 4": (gptq(4), "int4", {}),
    "GPTQ 8": (gptq(8), "int8", {}),
    "GPTQ without zero points": (gptq(4, zeros=False), "int4", {}),
    "GPTQ without either": (gptq(8, zeros=False, order=False), "int8", {"quantization_config": {"bits": 8}}),
    "AWQ": (awq, "int4", {}),
    "AWQ gemv": (awq_gemv, "int4", {"quantization_config": {"bits": 4, "version": "gemv"}}),
    "AWQ gemv_fast": (awq_fast, "int4", {}),
    "AWQ marlin": (awq_marlin, "int4", {}),
    "pack-quantized 4": (pack_quantized(4), "int4", {}),
    "pack-quantized 3": (pack_quantized(3), "int3", {}),
    "pack-quantized with zero points": (pack_quantized(4, zeros=True), "int4", {}),
    "nvfp4-pack-quantized": (in_bytes(4, torch.float8_e4m3fn, 16, beside="weight_global_scale"), "float4_e2m1fn", {}),
    "mxfp4-pack-quantized": (in_bytes(4, torch.uint8, 32), "float4_e2m1fn", {}),
    "mxfp6-pack-quantized": (in_bytes(6, torch.uint8, 32), "float6_e3m2fn", {}),
    "NVFP4 of ModelOpt": (
        in_bytes(4, torch.float8_e4m3fn, 16, name="weight", beside="weight_scale_2"), "float4_e2m1fn", {},
    ),
    "float-quantized": (fp8("weight_scale", lambda out, _: (out, 1)), "float8_e4m3fn", {}),
    "FP8 with one scale": (fp8("weight_scale", lambda *_: ()), "float8_e4m3fn", {}),
    "FP8 in tiles": (fp8("weight_scale_inv", lambda out, inputs: (-(-out // 32), -(-inputs // 32))), "float8_e4m3fn", {}),
    "MLX 2": (mlx(2), "int2", {"quantization": {"group_size": 32, "bits": 2}}),
    "MLX 3": (mlx(3), "int3", {"quantization": {"group_size": 32, "bits": 3}}),
    "MLX 4": (mlx(4), "int4", IN_MLX),
    "MLX 6": (mlx(6), "int6", {"quantization_config": {"group_size": 32, "bits": 6}}),
    "MLX 8": (mlx(8), "int8", {"quantization": {"group_size": 32, "bits": 8}}),
    "MLX mxfp4": (mlx_floats(4, 32), "float4_e2m1fn", {}),
    "MLX nvfp4": (mlx_floats(4, 16), "float4_e2m1fn", {}),
    "MLX mxfp8": (mlx_floats(8, 32), "float8_e4m3fn", {}),
    "BitNet": (bitnet, "int2", {}),
    "Metal": (metal, "int4", {"quantization_config": {"quant_method": "metal", "group_size": 32, "bits": 4}}),
    "FP-Quant mxfp4": (fp_quant(32), "float4_e2m1fn", {}),
    "FP-Quant nvfp4": (fp_quant(16), "float4_e2m1fn", {}),
    "Gemma 2": (gemma(2), "int2", {"quantization_config": {"quant_method": "gemma", "num_bits": 2}}),
    "Gemma 4": (gemma(4), "int4", {"quantization_config": {"quant_method": "gemma", "num_bits": 4}}),
    "Gemma 8": (gemma(8), "int8", {"quantization_config": {"quant_method": "gemma", "num_bits": 8}}),
    "EETQ": (eetq, "int8", {}),
    "HQQ 1": (hqq(1), "int1", {}),
    "HQQ 3": (hqq(3), "int3", {}),
    "HQQ 4": (hqq(4), "int4", {}),
    "HQQ 8": (hqq(8), "int8", {}),
    "HQQ without its notes": (hqq(3, noted=False), "int3", {
        "quantization_config": {"quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 32}}},
    }),
    "quanto 2": (quanto(2), "int2", {}),
    "quanto 4": (quanto(4), "int4", {}),
    "quanto 8": (quanto(8), "int8", {}),
    "quanto float8": (quanto(8, torch.float8_e4m3fn), "float8_e4m3fn", {}),
    "AQLM 1x16": (aqlm(1, torch.int16), "aqlm", {}),
    "AQLM 2x8": (aqlm(2, torch.int8), "aqlm", {}),
    "VPTQ": (vptq, "vptq", {"quantization_config": {"quant_method": "vptq", "config_for_layers": {
        f"model.layers.{layer}.{name}": {"out_features": out, "in_features": inputs, "vector_lens": [-1, 6]}
        for layer in range(2) for name, (out, inputs) in LINEARS.items()
    }}}),
    "HIGGS 3": (higgs(3), "higgs", {}),
    "HIGGS 4": (higgs(4), "higgs", {}),
    "SpQR": (spqr(by_rows=True), "spqr", {}),
    "SpQR in its own order": (spqr(by_rows=False), "spqr", {}),
    "EXL2": (exl2, "exl2", {}),
    "EXL3": (exl3(), "exl3", {}),
    "EXL3 with packed signs": (exl3(packed=True), "exl3", {}),
}  # fmt: skip


def noted(ledger: Ledger, words: str) -> bool:
    return any(words in note for note in ledger.notes)


def weights_of(ledger: Ledger, **how: Any) -> int:
    return sum(line.bytes for line in memory(ledger, sequence=8, **how).lines if line.part == "weights")


def data_bytes(file: Path) -> int:
    """Bytes of all tensors in a safetensors file: what follows its header."""
    return file.stat().st_size - 8 - int.from_bytes(file.read_bytes()[:8], "little")
