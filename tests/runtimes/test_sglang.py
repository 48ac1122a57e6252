"""SGLang's rules, judged by its own logs: `tests/support/engine_logs.py` says which rows judge."""

import pytest

import tallystick
from engine_logs import errors_of, plan, rows
from tallystick import BadInput
from tallystick.runtimes.sglang.releases import Asked, prefill_graphs, release_of, share

GIB = 2**30
ROWS = rows("sglang")
ROUNDED = {"mem usage": 0.03 * GIB, "K size": 0.011 * GIB, "V size": 0.011 * GIB}


@pytest.fixture(scope="module")
def errors():
    return errors_of(ROWS)


@pytest.mark.parametrize(
    ("what", "within", "least"),
    [
        ("mem usage", 0.01, 0.85),
        ("mem usage", 0.05, 1),
        ("#tokens", 0.01, 0.7),
        ("#tokens", 0.016, 0.9),
        ("K size", 0.011, 0.9),
        ("V size", 0.011, 0.9),
        ("KV size", 0.01, 1),
        ("states", 0.01, 1),
        ("KV and states", 0.01, 1),
        ("max_mamba_cache_size", 0.01, 1),
        ("max_running_requests", 0.01, 0.9),
        ("mem_fraction_static", 0.003, 1),
    ],
)
def test_the_logs_that_no_constant_was_read_from_agree(errors, what, within, least):
    far = [
        f"line {one.row.number}: {one.row.model} {one.error:+.2%}"
        for one in errors[what]
        if abs(one.error) > within and abs(one.ours - one.theirs) > ROUNDED.get(what, 0)
    ]
    assert 1 - len(far) / len(errors[what]) >= least, far


@pytest.mark.parametrize("row", [row for row in ROWS if row.starts is not None], ids=lambda row: f"line{row.number}")
def test_it_starts_or_not_as_the_log_says(row):
    assert plan(row).starts == row.starts


def test_the_rows_are_many_and_of_many_models():
    assert len(ROWS) >= 30
    assert len({row.preset for row in ROWS if row.judges}) >= 14
    assert {row.preset for row in ROWS if not row.judges} == {"llama-3.1-8b", "qwen3-235b-a22b"}


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


@pytest.mark.parametrize(
    ("version", "size", "tp", "of"),
    [
        ("0.4.2", 24_564, 1, 0.88),
        ("0.4.6", 23_034, 4, 0.85),
        ("0.4.9", 24_564, 1, 0.879),
        ("0.5.1", 81_559, 4, 0.856),
        ("0.5.6", 24_564, 1, 0.847),
        ("0.5.13", 294_896, 1, 0.909),
    ],
)
def test_the_default_share_of_each_release(version, size, tp, of):
    release = release_of(version)
    step = next(one for one in release.steps if size < one.below)
    asked = Asked(size, tp, tp, 1, step.tokens, step.graphs_parallel if tp >= 4 else step.graphs, False, "")
    assert share(release, asked) == of


def test_what_lowers_the_default_share():
    def of(version="0.5.13", **changed):
        asked = Asked(81_559, 8, 8, 1, 8192, 512, False, "")._replace(**changed)
        return share(release_of(version), asked)

    assert of(latent=True) < of()
    assert of(dp=8) < of()
    assert of("0.5.6", speculative="eagle") < of("0.5.6")
    assert of("0.5.6", speculative="draft_model") < of("0.5.6", speculative="eagle")
    assert of("0.5.1", dp=8) < of("0.5.1")
    assert prefill_graphs(8192) == 58  # the log of Qwen3-30B-A3B-FP8 in August 2026 counts them


def test_the_steps_of_a_device():
    assert planned("qwen3-8b", "mi325x").options["max_num_batched_tokens"] == 16_384
    assert planned("qwen3-8b", "l4", tp=2).options["max_num_batched_tokens"] == 4096
    assert planned("qwen3-8b", "l4", tp=2, engine_version="0.5.6").options["max_num_batched_tokens"] == 2048


@pytest.mark.parametrize("version", ["0.2.1", "new"])
def test_an_unknown_version_is_refused(version):
    with pytest.raises(BadInput, match="version"):
        release_of(version)


def test_memory_that_others_use_is_not_free():
    whole, less = planned("qwen3-8b"), planned("qwen3-8b", free_memory=60 * GIB)
    assert whole.kv_cache_bytes > less.kv_cache_bytes
    assert less.other_bytes == less.device.memory - 60 * GIB


def test_windowed_layers_have_a_pool_of_their_own():
    # SGLang's logs of Gemma 4 and MiMo have 0.8 windowed tokens for each token.
    answer = planned("gemma-4-31b")
    (line,) = [line for line in answer.lines if line.startswith("Use sliding window memory pool")]
    full, windowed = (int(word.rpartition("=")[2]) for word in line.replace(",", "").split()[-2:])
    assert windowed == int(0.8 * full)
    assert answer.kv_cache_tokens == full
    assert planned("gemma-4-31b", hybrid_kv_cache=False).kv_cache_tokens < full
    assert "Use sliding" not in str(planned("gemma-3-12b").lines)


def test_an_indexers_keys_are_cached_in_8_bits():
    assert planned("deepseek-v3.2", "h200", tp=8).kv_cache_bytes_per_token == 61 * (576 * 2 + 132)
    scaled = planned("deepseek-v3.2", "h200", tp=8, kv_cache_dtype="fp8")
    assert scaled.kv_cache_bytes_per_token == 61 * (512 + 16 + 128 + 132)


def test_data_parallel_attention_replicates_its_weights_and_its_latent_cache():
    tensor, data = (planned("deepseek-v3", "h200", tp=8, dp=dp) for dp in (1, 8))
    assert data.kv_cache_bytes_per_token == tensor.kv_cache_bytes_per_token
    # q_b, kv_b, its absorbed copies and o_proj of 128 heads, of which each rank held an eighth.
    assert 8 * GIB < data.weights_bytes - tensor.weights_bytes < 13 * GIB
    grouped = [planned("qwen3-235b-a22b", "h200", tp=8, dp=dp).kv_cache_bytes_per_token for dp in (1, 8)]
    assert grouped[1] == 4 * grouped[0]  # four key heads: one on each of eight ranks, or all on each
    with pytest.raises(BadInput, match="dp is 3, expected a divisor of tp, 8"):
        planned("deepseek-v3", "h200", tp=8, dp=3)


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
    assert answer.lines[1].startswith(
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {answer.kv_cache_tokens}, K size: "
    )
    older = planned("qwen3-8b", engine_version="0.5.6")
    assert older.lines[1].startswith(f"KV Cache is allocated. #tokens: {older.kv_cache_tokens}, K size: ")
    assert answer.lines[2].startswith(f"max_total_num_tokens={answer.kv_cache_tokens}, chunked_prefill_size=8192")
    tight = planned("qwen3-8b", gpu_memory_utilization=0.1)
    assert tight.lines[-1] == "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    assert planned("llama-3-70b").lines == ("torch.OutOfMemoryError: CUDA out of memory.",)


def test_pages_are_whole():
    assert planned("qwen3-8b", block_size=64).kv_cache_tokens % 64 == 0


def test_recurrent_states_take_their_share():
    hybrid = planned("qwen3.5-27b")
    left = hybrid.device.memory - hybrid.other_bytes - hybrid.weights_bytes - hybrid.activations_bytes
    state = 48 * (48 * 128 * 128 * 4 + 10_240 * 3 * 2)
    assert hybrid.kv_cache_bytes * 1.9 == pytest.approx(left, abs=2 * state)
    slots = next(int(line.split()[-1]) for line in hybrid.lines if line.startswith("Mamba Cache"))
    assert slots == int((left * 0.9 / 1.9 - state) // state)
    assert hybrid.options["max_num_seqs"] == slots // 3
    assert planned("qwen3.5-27b", max_mamba_cache_size=30).options["max_num_seqs"] == 10


def test_a_format_that_it_lacks():
    with pytest.raises(BadInput, match="kv_cache_dtype is 'q8_0', expected one of auto, bfloat16"):
        planned("qwen3-8b", kv_cache_dtype="q8_0")
