"""SGLang's rules, compared with the numbers of its public logs."""

import pytest

import tallystick
from tallystick import BadInput
from tallystick.runtimes.sglang import _share

GIB = 2**30


def planned(source, device="h100", **options):
    return tallystick.serve(source, engine="sglang", device=device, **options)


@pytest.mark.parametrize(
    ("source", "options", "tokens", "gigabytes"),
    [
        ("qwen2.5-32b", {"tp": 4}, 46_611, 2 * 1.42),  # stored file 47376055009
        ("qwen2.5-0.5b", {}, 2_658_165, 2 * 15.21),  # stored file 55068335887
        ("qwen3-235b-a22b", {"tp": 4, "quantization": "fp8"}, 367_404, 2 * 8.23),  # vllm-project/vllm#21348
        ("qwen3-30b-a3b", {}, 1_669_816, 2 * 76.44),  # sgl-project/sglang PR#18263
        ("qwen2.5-1.5b", {"kv_cache_dtype": "fp8_e5m2"}, 1000, 1000 * 28 * 2 * 2 * 128 / GIB),
    ],
)
def test_bytes_of_a_token_are_those_of_the_log(source, options, tokens, gigabytes):
    answer = planned(source, **options)
    assert tokens * answer.kv_cache_bytes_per_token / GIB == pytest.approx(gigabytes, abs=0.02)


@pytest.mark.parametrize(
    ("source", "options", "gigabytes"),
    [("qwen2.5-32b", {"tp": 4}, 15.54), ("qwen3-30b-a3b", {"device": "mi300x"}, 56.98)],
)
def test_weights_are_within_two_percent_of_the_log(source, options, gigabytes):
    assert planned(source, **options).weights_bytes / GIB == pytest.approx(gigabytes, rel=0.02)


def test_the_default_share_is_that_of_the_log():
    # sgl-project/sglang PR#18263 prints 0.911 on a card of 288 GB, 294,896 MiB.
    assert _share(294_896, 16_384, 512, 1) == 0.911
    assert planned("qwen3-8b", "mi325x").options["max_num_batched_tokens"] == 16_384
    assert planned("qwen3-8b", "l4", tp=2).options["max_num_batched_tokens"] == 2048


@pytest.mark.parametrize(
    ("tokens", "context", "requests"),
    [
        (903_439, 131_072, 3529),
        (2_658_165, 32_768, 4096),
        (1000, 131_072, 2048),
    ],  # stored files 45518106035, 55068335887
)
def test_requests_follow_from_the_pool(tokens, context, requests):
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 64,
        "num_attention_heads": 1, "max_position_embeddings": context, "dtype": "bfloat16",
    }  # fmt: skip
    probe = planned(config, "80GB", gpu_memory_utilization=0.5)
    share = (tokens * probe.kv_cache_bytes_per_token + probe.weights_bytes + 128) / (80e9 - probe.other_bytes)
    answer = planned(config, "80GB", gpu_memory_utilization=share)
    assert answer.kv_cache_tokens == pytest.approx(tokens, abs=2)
    assert answer.options["max_num_seqs"] == requests


def test_the_lines_and_what_does_not_start():
    answer = planned("qwen3-8b")
    assert answer.lines[0].startswith("Load weight end. avail mem=")
    assert answer.lines[1].startswith(f"KV Cache is allocated. #tokens: {answer.kv_cache_tokens}, K size: ")
    assert answer.lines[2].startswith(f"max_total_num_tokens={answer.kv_cache_tokens}, chunked_prefill_size=8192")
    tight = planned("qwen3-8b", gpu_memory_utilization=0.1)
    assert tight.lines[-1] == "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    assert planned("llama-3-70b").lines == ("torch.OutOfMemoryError: CUDA out of memory.",)


def test_pages_are_whole():
    assert planned("qwen3-8b", block_size=64).kv_cache_tokens % 64 == 0


def test_recurrent_states_take_their_share():
    hybrid = planned("qwen3.5-27b")
    assert hybrid.kv_cache_bytes * 1.9 == pytest.approx(
        hybrid.device.memory - hybrid.other_bytes - hybrid.weights_bytes - hybrid.activations_bytes, rel=1e-6
    )


def test_a_format_that_it_lacks():
    with pytest.raises(BadInput, match="kv_cache_dtype is 'q8_0', expected one of auto, bfloat16"):
        planned("qwen3-8b", kv_cache_dtype="q8_0")
