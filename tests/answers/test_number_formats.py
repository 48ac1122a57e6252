"""Bytes of quantised weights are those of the tensors that torchao makes."""

import pytest

import tallystick
from tallystick import Entry
from tallystick.answers.memory.number_formats import bytes_of


def matrix(rows, columns):
    return Entry("h.0.mlp.up.weight", (rows, columns), "mlp", "bfloat16", "h.0.mlp.up.weight", rows * columns)


@pytest.mark.parametrize("form", ["int8", "fp8"])
def test_eight_bits_as_torchao_stores_them(form):
    from torch import nn
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    model = nn.Sequential(nn.Linear(64, 32, bias=False))
    quantize_(model, {"int8": Int8WeightOnlyConfig, "fp8": Float8WeightOnlyConfig}[form]())
    weight = model[0].weight
    held = sum(getattr(weight, name).nbytes for name in weight.__tensor_flatten__()[0])
    assert bytes_of(matrix(32, 64), form) == held


def test_four_bits_by_hand():
    """Scales: int4 has 32 bits for 128 elements, nf4 32 for 64, or 8, and 32 for 256 of those."""
    columns = 130 * 128
    assert bytes_of(matrix(3, columns), "int4") == 3 * columns // 2 + 3 * 130 * 4
    assert bytes_of(matrix(64, columns), "nf4") == 64 * columns // 2 + 64 * 260 * 4
    assert bytes_of(matrix(64, columns), "nf4-dq") == 64 * columns // 2 + 64 * 260 + 64 * 260 // 256 * 4
    assert bytes_of(matrix(64, columns), "mxfp4") == 64 * columns // 2 + 64 * 520
    assert bytes_of(matrix(64, columns), "awq") == 64 * columns // 2 + 64 * 130 * 5 // 2
    assert bytes_of(matrix(64, columns), "gptq-4bit-128g") == bytes_of(matrix(64, columns), "awq") + 4 * columns


# Published: bytes of checkpoints ("total_size" of an index), and what vLLM logs as loaded, in GiB.
@pytest.mark.parametrize(
    ("preset", "form", "theirs", "within"),
    [
        ("gpt-oss-20b", "mxfp4", 13_761_264_768, 0),  # openai/gpt-oss-20b, model.safetensors.index.json
        ("llama-3-8b", "awq", 5.3440 * 2**30, 0.003),  # casperhansen/llama-3-8b-instruct-awq (stored file 35400915562)
        ("llama-3.1-8b", "gptq", 5.3388 * 2**30, 0.003),  # stored file 70945204665
        ("qwen2.5-7b", "awq", 5.20 * 2**30, 0.003),  # Qwen/Qwen2.5-7B-Instruct-AWQ (stored file 53268049166)
    ],
)
def test_quantised_checkpoints_have_the_published_size(preset, form, theirs, within):
    ours = tallystick.memory(preset, dtype=form).weights_bytes
    assert ours == pytest.approx(theirs, rel=within, abs=0)


def test_mxfp4_leaves_attention_and_biases_unpacked():
    assert bytes_of(matrix(8, 64)._replace(role="attention"), "mxfp4") == 2 * 8 * 64
    assert bytes_of(matrix(8, 64)._replace(name="h.0.experts.gate_up_proj_bias"), "awq") == 2 * 8 * 64


@pytest.mark.parametrize(
    ("form", "bits"), [("q8_0", 8.5), ("q5_1", 6), ("q5_0", 5.5), ("q4_1", 5), ("q4_0", 4.5), ("iq4_nl", 4.5)]
)
def test_llama_cpp_keeps_the_cache_in_blocks(form, bits):
    plain = tallystick.memory("llama-3.1-8b", dtype="bf16", sequence=4096).kv_cache_bytes
    assert (
        tallystick.memory("llama-3.1-8b", dtype="bf16", sequence=4096, kv_dtype=form).kv_cache_bytes
        == plain * bits / 16
    )


def test_a_latent_cache_in_blocks_is_what_llama_cpp_logs():
    # ikawrakow/ik_llama.cpp PR#259: DeepSeek-V3 with 32,768 cells in q8_0, 1166.62 MiB.
    answer = tallystick.memory("deepseek-v3", kv_dtype="q8_0", sequence=32768)
    assert round(answer.kv_cache_bytes / 2**20, 2) == 1166.62
