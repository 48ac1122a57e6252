"""`--gpu-layers auto`: the layers that llama.cpp's `--fit` chooses, and where the rest is."""

import json
import re

import pytest

import tallystick
from tallystick import BadInput
from tallystick.cli.main import main

MIB = 2**20
MARGIN = 1024 * MIB


def planned(source="llama-3.1-8b", device="8GiB", **options):
    return tallystick.serve(source, engine="llama.cpp", device=device, **{"gpu_layers": "auto", **options})


def held(answer):
    """Bytes on the device."""
    return answer.weights_bytes + answer.kv_cache_bytes + answer.other_bytes + answer.activations_bytes


def size(answer, label):
    return sum(map(float, re.findall(rf"{label} = +([\d.]+) MiB", "\n".join(answer.lines))))


def test_the_layers_are_those_of_a_public_log():
    # A log of an RTX 2060 with 5141 MiB free (stored file 61471163053): Hermes 3 8B in Q4_0,
    # `-c 32768`, "offloaded 15/33 layers", "CUDA0 model buffer size = 2049.43 MiB",
    # 1792 MiB of KV cache on the device and 2304 on the host, 2388 MiB of weights on the host.
    answer = planned(device="5738MiB", free_memory=5141 * MIB, dtype="q4_0", max_model_len=32768)
    assert answer.lines[0] == "load_tensors: offloaded 15/33 layers to GPU"
    assert size(answer, "CUDA0 model buffer size") == 2049.43
    assert size(answer, "CPU_Mapped model buffer size") == pytest.approx(2388, abs=1)
    assert (size(answer, "CUDA0 KV buffer size"), size(answer, "CPU KV buffer size")) == (1792, 2304)
    assert answer.host_bytes == pytest.approx((2388.38 + 2304) * MIB, abs=MIB)


def test_what_fits_is_not_changed():
    assert planned(device="24GiB", dtype="q4_k_m", max_model_len=8192).lines == (
        planned(device="24GiB", dtype="q4_k_m", max_model_len=8192, gpu_layers=None).lines
    )


@pytest.mark.parametrize("room", [3, 5, 8, 11])
def test_one_layer_more_would_not_leave_the_margin(room):
    answer = planned("qwen3-14b", f"{room}GiB", dtype="q6_k", max_model_len=8192)
    layers = answer.options["gpu_layers"]
    each = (answer.weights_bytes + answer.kv_cache_bytes) / max(layers, 1)
    assert held(answer) <= room * 2**30 - MARGIN
    assert held(answer) + 1.6 * each > room * 2**30 - MARGIN or layers == 41
    assert 0 < layers < 41


def test_the_context_is_shortened_first_unless_it_is_asked_for():
    shorter = planned("qwen2.5-7b", "8GiB", dtype="q4_k_m")
    assert shorter.options["gpu_layers"] == 29
    assert shorter.options["max_model_len"] == shorter.kv_cache_tokens
    assert shorter.kv_cache_tokens % 256 == 0
    assert 4096 < shorter.kv_cache_tokens < 131072
    asked = planned("qwen2.5-7b", "8GiB", dtype="q4_k_m", max_model_len=131072)
    assert asked.options["gpu_layers"] < 29
    assert asked.kv_cache_tokens == 131072
    least = planned("qwen2.5-7b", "4GiB", dtype="q4_k_m")
    assert (least.kv_cache_tokens, least.options["gpu_layers"] < 29) == (4096, True)


def test_experts_leave_the_device_before_layers_do():
    answer = planned("qwen3-30b-a3b", "12GiB", dtype="q4_k_m", max_model_len=8192)
    assert answer.options["gpu_layers"] == 49
    kept = answer.options["cpu_moe_layers"]
    assert 0 < kept < 48
    assert held(answer) <= 12 * 2**30 - MARGIN
    more = planned("qwen3-30b-a3b", "12GiB", dtype="q4_k_m", max_model_len=8192, gpu_layers=49, cpu_moe_layers=kept - 1)
    assert held(more) > 12 * 2**30 - MARGIN
    small = planned("qwen3-30b-a3b", "2GiB", dtype="q4_k_m", max_model_len=8192)
    assert small.options["gpu_layers"] < 49
    assert small.options["cpu_moe_layers"] == 48


def test_the_driver_keeps_its_context():
    given, known = planned(device=24 * 2**30, dtype="f16"), planned(device="rtx4090", dtype="f16")
    assert known.device.context
    assert held(known) <= known.device.memory - known.device.context - MARGIN
    assert known.kv_cache_tokens < given.kv_cache_tokens


def test_states_are_where_their_layer_is():
    whole, part = (planned("qwen3.5-27b", "40GiB", dtype="q4_k_m", max_model_len=8192, gpu_layers=n) for n in (65, 33))
    assert part.other_bytes == pytest.approx(whole.other_bytes / 2, rel=0.05)


def test_everything_is_counted_once():
    whole = planned(device="80GiB", dtype="q4_k_m", max_model_len=8192)
    part = planned(device="4GiB", dtype="q4_k_m", max_model_len=8192)
    assert part.host_bytes + part.weights_bytes + part.kv_cache_bytes == (
        whole.host_bytes + whole.weights_bytes + whole.kv_cache_bytes
    )


def test_the_command(capsys):
    words = ["serve", "llama-3-70b", "--engine", "llama.cpp", "--device", "8GiB", "--dtype", "q4_k_m", "--ngl", "auto"]
    assert main([*words, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["lines"][0] == f"load_tensors: offloaded {answer['options']['gpu_layers']}/81 layers to GPU"
    assert answer["host_bytes"] > 30e9
    words = [
        "fit",
        "llama-3-70b",
        "--engine",
        "llama.cpp",
        "--dtype",
        "q4_k_m",
        "--gpu-layers",
        "auto",
        "--sequence",
        "4k",
    ]
    assert main([*words, "--format", "json"]) == 0
    assert all(one["starts"] for one in json.loads(capsys.readouterr().out)["devices"])
    with pytest.raises(BadInput, match="gpu_layers is the string 'most', expected layers, such as 20, or auto"):
        planned(gpu_layers="most")
