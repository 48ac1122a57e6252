"""What engines add to a model: allocated segments, drafts, LoRA adapters, replicas, offload."""

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.serve.allocations import reserved
from tallystick.core.entries import Axis, Entry

GIB, MIB = 2**30, 2**20


def planned(source="llama-3.1-8b", device="h100", engine="vllm", **options):
    return tallystick.serve(source, engine=engine, device=device, **{"max_model_len": 8192, **options})


def tensor(name, *shape, layers=0):
    axes = (Axis(0, layers),) if layers else ()
    size = shape[0] * shape[1]
    return Entry(name, shape, "mlp", "bfloat16", name, size, axes=axes)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([tensor("a", 1024, 512)], 2),  # 1 MiB: a segment of small tensors
        ([tensor("a", 1024, 512), tensor("b", 1024, 512)], 2),
        ([tensor("a", 1024, 1024)], 20),  # 2 MiB: a segment of large ones
        ([tensor("a.{}", 1024, 1024, layers=10)], 20),
        ([tensor("a.{}", 1024, 1024, layers=11)], 40),
        ([tensor("a", 5 * 1024, 1024)], 10),  # 10 MiB: alone
        ([tensor("a", 5 * 1024 + 1, 1024)], 12),
        ([tensor("a", 9 * 512, 1024), tensor("b", 5 * 1024, 1024)], 20),  # 9 MiB leave room for 10
    ],
)
def test_segments_are_those_of_torchs_allocator(entries, expected):
    assert reserved(entries, None) == expected * MIB


def test_projections_of_one_input_are_one_tensor():
    parts = [tensor(f"layers.{{}}.self_attn.{name}_proj.weight", 2048, 1024, layers=2) for name in "qkv"]
    assert reserved(parts, None) == 2 * 12 * MIB  # two of 12 MiB, where six of 4 MiB share two segments of 20
    gates = [tensor(f"layers.0.mlp.{name}_proj.weight", 3072, 1024) for name in ("gate", "up")]
    assert reserved(gates, None) == 12 * MIB


def test_a_model_of_very_many_layers_is_not_packed():
    assert reserved([tensor("a.{}", 8, 8, layers=10**9)], None) == 10**9 * 128


def test_a_draft_model_has_weights_and_a_cache():
    plain, drafted = planned("llama-3.1-8b"), planned(speculative="draft_model", draft="llama-3.2-1b")
    assert drafted.draft_bytes == 2 * 1_235_814_400
    assert drafted.weights_bytes == plain.weights_bytes + drafted.draft_bytes
    assert drafted.kv_cache_bytes_per_token == plain.kv_cache_bytes_per_token + 16 * 2 * 8 * 64 * 2
    assert drafted.kv_cache_tokens < plain.kv_cache_tokens
    sglang = [planned(engine="sglang", **options) for options in ({}, {"speculative": "eagle3"})]
    assert sglang[1].kv_cache_bytes_per_token * 32 == sglang[0].kv_cache_bytes_per_token * 33


def test_an_eagle_head_has_the_published_size():
    # SafeAILab/EAGLE#60: 0.24B for LLaMA2-Chat 7B, without the token embedding.
    head = planned("llama-2-7b", speculative="eagle", max_model_len=4096).draft_bytes
    assert head / 2 == pytest.approx(0.24e9, rel=0.02)


def test_an_eagle3_head_reads_two_states_and_has_a_head_of_its_own():
    attention = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096  # queries, keys and values of two states; output
    own = attention + 3 * 4096 * 14336 + 3 * 4096 * 4096 + 32_000 * 4096  # MLP, projection of three states, head
    assert planned(speculative="eagle3").draft_bytes == 2 * own


def test_an_mtp_layer_is_a_block_and_a_projection():
    # DeepSeek-V3's README: 11.5 billion parameters of MTP, without embedding and head.
    answer = planned("deepseek-v3", "h200", tp=8, speculative="mtp", quantization="fp8")
    assert 8 * answer.draft_bytes == pytest.approx(11.5e9, rel=0.17)  # projections of attention in 8 and 16 bits
    assert planned("deepseek-v3", "h200", tp=8).kv_cache_bytes_per_token * 62 == answer.kv_cache_bytes_per_token * 61


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"speculative": "guess"}, "speculative is 'guess', expected one of mtp, eagle"),
        ({"speculative": "draft_model"}, "name it with --draft"),
        ({"max_loras": -1}, "max_loras is -1, expected adapters, such as 4"),
        ({"dp": 0}, "dp is 0, expected a positive integer"),
        ({"cpu_moe_layers": True}, "cpu_moe_layers is True, expected layers"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(BadInput) as refused:
        planned(**options)
    assert said in str(refused.value)


def test_an_n_gram_adds_nothing():
    assert planned(speculative="ngram").lines == planned().lines


def test_slots_of_adapters_are_as_large_as_an_adapter():
    # PEFT's adapter of rank 16 on all linear layers of Llama 3.1 8B: 41,943,040 parameters.
    answer = planned(max_loras=4)
    assert answer.adapters_bytes == 4 * 2 * 41_943_040
    assert answer.weights_bytes == planned().weights_bytes + answer.adapters_bytes
    assert planned(max_loras=4, max_lora_rank=64).adapters_bytes == 4 * answer.adapters_bytes
    assert planned(max_loras=4, tp=2).adapters_bytes < answer.adapters_bytes
    assert planned(max_loras=0).lines == planned().lines


def test_replicas_divide_the_experts():
    one, eight = planned("qwen3-30b-a3b"), planned("qwen3-30b-a3b", dp=8)
    assert eight.experts_bytes * 8 == one.experts_bytes
    assert one.weights_bytes - eight.weights_bytes == one.experts_bytes * 7 // 8
    assert planned(dp=2).weights_bytes == planned().weights_bytes  # no experts
    with pytest.raises(BadInput, match="dp is 2"):
        planned(engine="llama.cpp", dp=2)


def test_an_override_of_the_pages():
    answer = planned(num_gpu_blocks_override=100)
    assert answer.kv_cache_tokens == 1600
    assert answer.kv_cache_bytes == 1600 * answer.kv_cache_bytes_per_token
    assert not answer.starts  # 8,192 tokens need 512 pages
    assert planned(num_gpu_blocks_override=512).starts


def test_memory_that_is_not_free_stops_a_start():
    assert planned(gpu_memory_utilization=0.9).starts
    answer = planned(gpu_memory_utilization=0.9, free_memory=60 * GIB)
    assert "Free memory on device (60.00/" in answer.lines[0]


def test_experts_in_the_hosts_memory():
    whole = planned("qwen3-30b-a3b", "24GB", "llama.cpp", quantization="q8_0")
    assert not whole.starts
    advised = {change.flags.split()[0]: change.flags.split()[1] for change in whole.changes}
    fewer = planned(
        "qwen3-30b-a3b", "24GB", "llama.cpp", quantization="q8_0", cpu_moe_layers=int(advised["--n-cpu-moe"])
    )
    assert fewer.starts
    assert fewer.kv_cache_bytes == whole.kv_cache_bytes
    every = planned("qwen3-30b-a3b", "24GB", "llama.cpp", quantization="q8_0", cpu_moe_layers=99)
    assert every.weights_bytes == whole.weights_bytes - whole.experts_bytes


@pytest.mark.parametrize(
    ("engine", "flags"),
    [("vllm", "--tensor-parallel-size 2"), ("sglang", "--tp-size 2"), ("llama.cpp", "--ctx-size ")],
)
def test_flags_are_the_engines_own(engine, flags):
    found = planned("qwen3-8b", "18GB", engine, max_model_len=40_960).changes
    assert any(change.flags.startswith(flags) for change in found)


def test_offload_is_advised_and_lets_it_start():
    answer = planned("llama-3.1-8b", "rtx4080")
    gib = next(int(change.flags.split()[1]) for change in answer.changes if change.flags.startswith("--cpu-offload-gb"))
    assert not answer.starts
    assert planned("llama-3.1-8b", "rtx4080", cpu_offload_gb=gib).starts
