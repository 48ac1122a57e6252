"""llama.cpp's buffers, judged by its logs: `tests/support/engine_logs.py` says which rows judge."""

import csv
import re

import pytest

import tallystick
from engine_logs import FOLDER, judged, rows
from tallystick import BadInput

ROWS = rows("llama_cpp")
MIB = 2**20
with open(FOLDER / "llama_cpp_graphs.csv", newline="") as file:
    GRAPHS = list(csv.DictReader(file))
# What the log says and ours cannot, with the reason.
APART = {
    (38, "CUDA0 compute buffer size"): "the masks of a step of 4,096 tokens stay next to its logits",
    (46, "CUDA0 compute buffer size"): "the device computes layers of the host too, with copies of their caches",
    (53, "CUDA0 compute buffer size"): "Metal's, of 6.6 MiB more",
    (57, "CUDA1 compute buffer size"): "of the last of two cards in builds of 2024, 12.8 MiB more",
    (58, "CUDA1 compute buffer size"): "of the last of two cards in builds of 2024, 4.5 MiB more",
    (48, "CUDA_Host compute buffer size"): "inputs and results of experts on the host",
}
ROUNDED = 0.025 * MIB  # of a number in the log, and small tensors of an output buffer


def planned(source="llama-3.1-8b", device="80GB", **options):
    return tallystick.serve(
        source, engine="llama.cpp", device=device, **{"max_model_len": 8192, "engine_version": "b5900", **options}
    )


def size(answer, label):
    return sum(map(float, re.findall(rf"{label} = +([\d.]+) MiB", "\n".join(answer.lines))))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line{row.number}")
def test_buffers_are_those_of_the_log(row):
    for one in judged(row):
        if (row.number, one.what) in APART:
            assert abs(one.error) > 0.01  # else it is apart no longer
            continue
        near = abs(one.error) <= 0.01 or abs(one.ours - one.theirs) <= ROUNDED
        assert near, f"{row.model}: {one.what} {one.ours / MIB:.2f}, the log has {one.theirs / MIB:.2f} MiB"


def test_the_rows_are_many_and_of_many_models():
    assert len(ROWS) >= 57
    assert sum(row.judges for row in ROWS) >= 47
    assert {row.preset for row in ROWS if not row.judges} == {"pythia-2.8b", "llama-3.1-8b", "gpt-oss-20b"}


def test_a_head_on_the_host_is_copied_for_long_steps():
    options = {"quantization": "mxfp4", "max_model_len": 4096, "gpu_layers": 24}
    answer = planned("gpt-oss-20b", **options)
    logits, copied = 512 * (201088 + 2880) * 4, 201088 * 2880 * 34 / 32
    assert answer.activations_bytes == pytest.approx(logits + copied, abs=20_000)  # and a norm
    assert planned("gpt-oss-20b", **{**options, "quantization": "mxfp4_moe"}).lines == answer.lines
    assert planned("gpt-oss-20b", **{**options, "gpu_layers": 25}).activations_bytes < answer.activations_bytes


@pytest.mark.parametrize(
    ("build", "eager", "held"), [("b5900", True, 640), ("b5900", False, 768), ("b7000", True, 768)]
)
def test_a_window_is_padded_as_the_build_pads_it(build, eager, held):
    answer = planned("gpt-oss-20b", max_model_len=4096, engine_version=build, enforce_eager=eager, max_num_seqs=1)
    assert size(answer, "CUDA0 KV buffer size") == 12 * (4096 + held) * 2048 / MIB


def test_the_host_maps_what_lies_between_its_tensors():
    options = {"source": "gpt-oss-20b", "quantization": "mxfp4", "max_model_len": 4096}
    held, split = planned(**options), planned(**options, cpu_moe_layers=14)
    moved = size(held, "CUDA0 model buffer size") - size(split, "CUDA0 model buffer size")
    mapped = size(split, "CPU_Mapped model buffer size") - size(held, "CPU_Mapped model buffer size")
    assert 1.05 < mapped / moved < 1.07  # the attention of these layers is in both


def test_layers_on_the_host_leave_the_device():
    whole, half, none = (planned(quantization="q4_0", gpu_layers=layers) for layers in (33, 16, 0))
    assert planned(quantization="q4_0").lines == whole.lines
    assert half.weights_bytes < 0.5 * whole.weights_bytes
    assert half.kv_cache_bytes * 2 == whole.kv_cache_bytes
    assert size(half, "CPU KV buffer size") == size(half, "CUDA0 KV buffer size") == 512
    assert none.weights_bytes == none.kv_cache_bytes == none.activations_bytes == 0
    total = size(whole, "CUDA0 model buffer size") + size(whole, "CPU_Mapped model buffer size")
    assert size(none, "CPU_Mapped model buffer size") == pytest.approx(total, abs=0.02)


def test_a_tied_head_is_a_copy_on_the_device():
    answer = planned("qwen3-0.6b", quantization="q8_0", max_model_len=1024)
    assert size(answer, "CPU_Mapped model buffer size") == round(151936 * 1024 * 34 / 32 / MIB, 2)
    assert planned("qwen3-0.6b", quantization="q8_0", max_model_len=1024, gpu_layers=28).weights_bytes < (
        answer.weights_bytes - 150 * MIB
    )


def test_a_context_is_a_multiple_of_256_and_shared():
    answer = planned(max_model_len=1000, max_num_seqs=4, input_tokens=200, output_tokens=50)
    assert answer.kv_cache_tokens == 1024
    assert answer.requests == 4
    assert planned(max_model_len=1000, max_num_seqs=8, input_tokens=200, output_tokens=50).requests == 4


def test_wide_values_of_a_latent_attention_are_held_by_head_and_side_by_side():
    """When the heads are joined, in a step of 512 tokens in float32."""
    heads, latent = 4, {"q_lora_rank": 16, "kv_lora_rank": 16}
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "first_k_dense_replace": 1}
    config = {"model_type": "deepseek_v3", "vocab_size": 100, "num_attention_heads": heads, **sizes, **latent}
    models = [{**config, "v_head_dim": width} for width in (1024, 2048)]
    held = [planned(model, max_model_len=512).activations_bytes for model in models]
    assert held[1] - held[0] == 2 * 512 * heads * 1024 * 4


def test_windows_keep_a_step_more_unless_asked_for_all():
    answer = planned("gemma-3-12b", max_model_len=32768)
    assert size(answer, "CUDA0 KV buffer size") == (8 * 32768 + 40 * (1024 + 512)) * 8192 / MIB
    whole = planned("gemma-3-12b", max_model_len=32768, hybrid_kv_cache=False)
    assert size(whole, "CUDA0 KV buffer size") == 48 * 32768 * 8192 / MIB


def test_scores_count_without_flash_attention():
    assert planned(enforce_eager=True, max_model_len=32768).activations_bytes > 4 * planned().activations_bytes


def test_a_context_longer_than_the_models_is_allowed():
    assert planned("qwen3-8b", max_model_len=131072, quantization="q4_k_m", device="80GB").starts


def test_what_does_not_fit_advises_what_does():
    answer = planned("llama-3.1-8b", "8GB", quantization="q8_0", max_model_len=16384)
    assert not answer.starts
    assert answer.lines[-1].startswith("error: failed to allocate CUDA0 buffer")
    advised = {change.flags.split()[0]: change.flags.split()[1] for change in answer.changes}
    assert {"--gpu-layers", "--quantization"} <= advised.keys()
    fewer = planned(
        "llama-3.1-8b", "8GB", quantization="q8_0", max_model_len=16384, gpu_layers=int(advised["--gpu-layers"])
    )
    assert fewer.starts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tp": 2}, "llama.cpp divides layers, not tensors: give --pp 2"),
        ({"quantization": "awq"}, "'awq' is not a file type of llama.cpp: give one such as f16 or q4_k_m"),
        ({"quantization": "int99"}, "unknown number format 'int99'"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype is 'fp8', expected one of auto, f16"),
        ({"num_hidden_layers": 513}, "llama.cpp holds models of 1 to 512 layers (LLAMA_MAX_LAYERS), this one has 513"),
        ({"num_hidden_layers": 200_000, "gpu_layers": "auto"}, "llama.cpp holds models of 1 to 512 layers"),
        ({"tensor_split": "half"}, "tensor_split is 'half', expected each device's part of the layers, such as 3,1"),
        ({"tensor_split": "0,0"}, "tensor_split is '0,0', expected each device's part of the layers"),
        ({"override_tensor": "exps"}, "override_tensor is 'exps', expected a pattern and a buffer type"),
        ({"override_tensor": "(=CPU"}, "override_tensor is '(=CPU', expected a pattern and a buffer type"),
        ({"value_cache_dtype": "fp8"}, "value_cache_dtype is 'fp8', expected one of auto, f16"),
        ({"gpu_layers": -1}, "gpu_layers is -1, expected layers, such as 20"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(BadInput) as refused:
        planned(**options)
    assert said in str(refused.value)


@pytest.mark.parametrize("row", GRAPHS, ids=lambda row: f"{row['model']} {row['tokens']} {row['slots']} {row['step']}")
def test_compute_buffers_are_those_that_the_library_reserves(row):
    # Reserved by llama.cpp's own library (b11434, no_alloc) for a device, with FlashAttention.
    slots = int(row["slots"])
    answer = planned(
        row["model"],
        "1000GiB",
        engine_version="b11434",
        quantization="q4_0",
        max_model_len=int(row["tokens"]),
        max_num_seqs=slots,
        kv_unified=row["unified"] == "1",
        max_num_batched_tokens=int(row["step"]),
    )
    assert answer.activations_bytes == pytest.approx(float(row["device_mib"]) * MIB, rel=0.001)
    assert size(answer, "CUDA_Host compute buffer size") == pytest.approx(float(row["host_mib"]), rel=0.002)


def test_devices_share_the_layers_and_what_a_pipeline_reads():
    # A log of b9967 on two cards (stored file 67189085737): gemma-3-1b in Q4_K_M with 4,096 cells.
    answer = planned("gemma-3-1b", engine_version="b9967", quantization="q4_k_m", max_model_len=4096, pp=2)
    said = {
        "CUDA0 model": 243.76, "CUDA1 model": 518.78, "CPU_Mapped model": 306.00, "CUDA0 KV": 38.00,
        "CUDA0 compute": 82.07, "CUDA1 compute": 82.07, "CUDA_Host compute": 30.58,
    }  # fmt: skip
    for label, theirs in said.items():
        assert size(answer, f"{label} buffer size") == pytest.approx(theirs, rel=0.003), label
    assert answer.weights_bytes == pytest.approx(243.76 * MIB, rel=0.001)
    thirds = planned("gemma-3-1b", tensor_split="2,1", max_model_len=4096)
    assert size(thirds, "CUDA0 KV buffer size") > 1.5 * size(thirds, "CUDA1 KV buffer size")


def test_keys_and_values_have_types_of_their_own():
    whole = planned(max_model_len=8192).kv_cache_bytes
    assert planned(kv_cache_dtype="q8_0", value_cache_dtype="q4_0").kv_cache_bytes == whole / 2 * (8.5 + 4.5) / 16
    assert planned(kv_cache_dtype="q4_0", value_cache_dtype="f16").kv_cache_bytes == whole / 2 * (4.5 + 16) / 16
    refused = planned(kv_cache_dtype="q8_0", enforce_eager=True)
    assert refused.limits[0] == "llama_init_from_model: V cache quantization requires flash_attn"
    assert planned(kv_cache_dtype="q8_0", value_cache_dtype="f16", enforce_eager=True).starts


def test_slots_share_the_cells_or_have_their_own():
    newest = {"source": "gpt-oss-20b", "engine_version": "b11434", "max_model_len": 16384}
    assert planned(**newest).lines == planned(**newest, max_num_seqs=4, kv_unified=True).lines
    each = planned(**newest, max_num_seqs=4)
    assert size(each, "CUDA0 KV buffer size") == (12 * 16384 + 12 * 4 * 768) * 2048 / MIB
    assert size(planned(**newest), "CUDA0 KV buffer size") == (12 * 16384 + 12 * (4 * 128 + 512)) * 2048 / MIB


def test_the_cache_may_stay_on_the_host():
    answer = planned(kv_offload=False)
    assert answer.kv_cache_bytes == 0
    assert size(answer, "CPU KV buffer size") == 1024
    assert answer.host_bytes - planned().host_bytes == 1024 * MIB


def test_tensors_are_where_a_pattern_puts_them():
    moe = {"source": "qwen3-30b-a3b", "quantization": "q8_0"}
    every = planned(**moe, override_tensor=r"\.ffn_.*_exps\.=CPU")
    assert every.weights_bytes == pytest.approx(planned(**moe, cpu_moe_layers=48).weights_bytes, rel=1e-6)
    some = planned(**moe, override_tensor=r"blk\.([0-9]|1[0-9])\.ffn_(up|down)_exps\.=CPU,exps=CUDA0")
    routed = (planned(**moe).weights_bytes - every.weights_bytes) / 48
    assert planned(**moe).weights_bytes - some.weights_bytes == pytest.approx(20 * routed * 2 / 3, rel=1e-4)


def test_towers_are_another_file():
    text = planned("gemma-3-12b", quantization="q4_k_m")
    assert size(text, "CUDA0 model buffer size") == pytest.approx(6956, abs=1)
    both = planned("gemma-3-12b", quantization="q4_k_m", mmproj=True)
    towers = (both.weights_bytes - text.weights_bytes) / MIB
    assert f"load_hparams: model size: {towers:8.2f} MiB" in both.lines
    assert 800 < towers < 900
