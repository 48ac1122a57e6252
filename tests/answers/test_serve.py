"""What `serve` plans: shards as engines have them, whether it starts, and what would help."""

import json

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.serve.options import Options
from tallystick.answers.serve.ranks import divided_layers, ranks_of
from tallystick.answers.serve.weight_format import QUANTIZATIONS
from tallystick.presets.hub_names import preset_of
from tallystick.runtimes.vllm import VLLM

GIB = 2**30


def planned(source="llama-3.1-8b", device="h100", **options):
    return tallystick.serve(source, engine="vllm", device=device, **{"max_model_len": 8192, **options})


def test_the_lines_of_a_start_are_those_of_the_log():
    # jgchn/llm-d-planner, accuracy/results/v0.19.0: Qwen3-8B on an H100 of 79.19 GiB.
    answer = planned("qwen3-8b", "79.19GiB", gpu_memory_utilization=0.95, engine_version="0.19")
    assert answer.lines == (
        "Model loading took 15.27 GiB memory",
        "Available KV cache memory: 57.50 GiB",
        "GPU KV cache size: 418,688 tokens",
        "Maximum concurrency for 8,192 tokens per request: 51.11x",
    )
    assert answer.starts


def test_every_rank_holds_a_key_head_if_there_are_more_ranks():
    ledger = tallystick.count("llama-3.1-8b")  # 8 key and value heads
    shares = {tp: ranks_of(ledger, None, "bfloat16", tp, 1, padded=64)[0] for tp in (8, 16)}
    assert {tp: int(rank.attending[0].heads.keys) for tp, rank in shares.items()} == {8: 1, 16: 1}
    # A head's rows of k_proj and v_proj in 32 layers, of which an equal share would be half.
    copies = 32 * 2 * 128 * 4096 * 2 // 2
    norms = 2 * 4096 * (2 * 32 + 1)  # whole on each rank
    equal = (2 * ledger.total - norms) // 16 + norms
    assert shares[16].weights == equal + copies
    assert planned(tp=16).kv_cache_bytes_per_token == planned(tp=8).kv_cache_bytes_per_token


def test_pipeline_stages_need_not_be_equal():
    assert divided_layers(32, 3) == [11, 11, 10]
    assert divided_layers(126, 16) == [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
    ranks = ranks_of(tallystick.count("llama-3.1-8b"), None, "bfloat16", 1, 3, padded=64)
    assert [sum(one.layers for one in rank.attending) for rank in ranks] == divided_layers(32, 3)
    assert sum(rank.weights for rank in ranks) == 2 * 8_030_261_248
    assert [rank.first for rank in ranks] == [True, False, False]
    assert [rank.last for rank in ranks] == [False, False, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tp": 5}, "Total number of attention heads (32) must be divisible by tensor parallel size (5)."),
        ({"max_model_len": 131073}, "User-specified max_model_len (131073) is greater than the derived"),
        ({"gpu_memory_utilization": 1.0}, "is less than desired GPU memory utilization"),
        ({"device": "12GiB"}, "CUDA out of memory"),
        ({"device": "17GiB"}, "No available memory for the cache blocks"),
        ({"device": "rtx4090", "max_model_len": 131072}, "the estimated maximum model length is"),
        ({"pp": 64}, "32 layers cannot be divided into 64 pipeline stages"),
    ],
)
def test_what_does_not_start_says_the_engines_error(options, said):
    answer = planned(**options)
    assert not answer.starts
    assert said in answer.lines[-1]
    assert said in answer.limits[0]


def test_a_vocabulary_that_is_not_divided_does_not_start():
    answer = planned("qwen3-14b", tp=5)  # 40 heads are divided; jgchn/llm-d-planner saw this error
    assert answer.lines == ("AssertionError: 151936 is not divisible by 5",)


def test_the_longest_request_that_fits_starts_and_a_longer_one_does_not():
    answer = planned(device="rtx4090", max_model_len=131072)
    assert 0 < answer.longest < 131072
    assert planned(device="rtx4090", max_model_len=answer.longest).starts
    assert not planned(device="rtx4090", max_model_len=answer.longest + 16).starts


def test_each_change_that_is_advised_makes_it_start():
    answer = planned(device="rtx4090", max_model_len=131072)
    advised = {change.flags.split()[0]: change for change in answer.changes}
    assert f"--max-model-len {answer.longest}" in [change.flags for change in answer.changes]
    assert planned(device="rtx4090", max_model_len=131072, tp=2).kv_cache_tokens == (
        advised["--tensor-parallel-size"].kv_cache_tokens
    )


def test_options_change_what_they_name():
    plain = planned()
    assert planned(kv_cache_dtype="fp8").kv_cache_bytes_per_token * 2 == plain.kv_cache_bytes_per_token
    assert planned(quantization="fp8").weights_bytes < 0.6 * plain.weights_bytes
    assert planned(dtype="float32").weights_bytes == 2 * plain.weights_bytes
    assert plain.weights_bytes - planned(cpu_offload_gb=4).weights_bytes == 4 * GIB
    assert planned(max_num_seqs=64).activations_bytes < plain.activations_bytes
    assert planned(block_size=32).options["block_size"] == 32
    assert planned(kv_cache_memory_bytes=GIB).kv_cache_bytes == GIB
    assert planned(engine_version="0.16").activations_bytes > 2 * plain.activations_bytes
    newer = {
        name: planned(engine_version="0.21", enforce_eager=eager) for name, eager in (("graphs", False), ("", True))
    }
    assert newer["graphs"].other_bytes > newer[""].other_bytes


def test_windows_at_full_length_hold_fewer_requests():
    windowed = planned("gemma-3-12b", max_model_len=131072)
    whole = planned("gemma-3-12b", max_model_len=131072, hybrid_kv_cache=False)
    assert windowed.max_concurrency > 3 * whole.max_concurrency


def test_requests_of_given_lengths():
    answer = planned(input_tokens=1000, output_tokens=24)
    assert answer.requests == int(answer.max_concurrency * 8)
    assert planned().requests is None
    with pytest.raises(BadInput, match="a request of 9,000 tokens is longer than max_model_len, 8,192"):
        planned(input_tokens=9000)


def test_a_recurrent_model_and_one_with_latent_attention_are_planned():
    hybrid = planned("qwen3.5-27b", max_model_len=32768)
    assert hybrid.max_concurrency > 0
    latent = planned("deepseek-v2-lite")
    assert latent.kv_cache_bytes_per_token == 27 * 576 * 2
    assert planned("deepseek-v2-lite", tp=2).kv_cache_bytes_per_token == 27 * 576 * 2


def test_float32_checkpoints_are_served_in_16_bits():
    answer = planned("gpt2", max_model_len=1024)
    assert answer.weights_bytes == pytest.approx(2 * 124_439_808, rel=0.001)


def test_the_longest_request_is_the_configs_or_else_the_engines():
    book = {"emb_dim": 768, "n_heads": 12, "n_layers": 2, "context_length": 256, "vocab_size": 1000}
    assert tallystick.serve(book, engine="vllm", device="t4").options["max_model_len"] == 256
    llama = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    assert tallystick.serve(llama, engine="vllm", device="t4").options["max_model_len"] == 2048
    scaled = {**llama, "max_position_embeddings": 100, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert tallystick.serve(scaled, engine="vllm", device="t4").options["max_model_len"] == 400


def test_rotary_tables_are_of_all_scaled_positions():
    def tables(scaling):
        sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "max_position_embeddings": 8192}
        config = {"model_type": "llama", **sizes, "dtype": "bfloat16", "rope_scaling": scaling}
        return planned(config, max_model_len=64).weights_bytes

    plain, one = tables(None), 8192 * 4 * 2  # cosines and sines of a head of 4 in 16 bits
    assert tables({"rope_type": "linear", "factor": 4}) == plain + 3 * one
    assert tables({"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}) == plain + one
    assert tables({"rope_type": "llama3", "factor": 8}) == plain
    assert tables({"full": {"rope_type": "dynamic", "factor": 2.0}, "sliding": {"rope_type": "default"}}) == plain + one


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quantization": "q9"}, "quantization is 'q9', expected one of fp8, awq"),
        ({"kv_cache_dtype": "int3"}, "kv_cache_dtype is 'int3', expected one of auto"),
        ({"tp": 0}, "tp is 0, expected a positive integer"),
        ({"gpu_memory_utilization": 95}, "gpu_memory_utilization is 95, expected a share such as 0.9"),
        ({"cpu_offload_gb": -1}, "cpu_offload_gb is -1, expected GiB, such as 4"),
        ({"engine_version": "0.1"}, "vLLM 0.1 is not known: rules begin with 0.6"),
        ({"dtype": "int99"}, "unknown number format 'int99'"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(BadInput) as refused:
        planned(**options)
    assert said in str(refused.value)


def test_an_unknown_engine_and_a_model_without_attention_are_refused(tmp_path):
    with pytest.raises(BadInput, match="engine is 'vlm', expected one of vllm"):
        tallystick.serve("gpt2", engine="vlm", device="h100")
    with pytest.raises(BadInput, match="mlp does not describe its attention"):
        tallystick.serve("mlp", engine="vllm", device="h100")


def test_each_quantisation_and_cache_is_planned():
    for word in QUANTIZATIONS:
        assert planned(quantization=word).weights_bytes
    for word in VLLM.caches:
        assert planned(kv_cache_dtype=word).kv_cache_tokens


def test_json_is_plain():
    answer = planned()
    assert json.loads(json.dumps(answer.to_dict()))["lines"] == list(answer.lines)
    assert set(Options.__dataclass_fields__) <= {*tallystick.serve.__wrapped__.__kwdefaults__}


@pytest.mark.parametrize(
    ("repository", "found"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", ("llama-3.1-8b", "")),
        ("meta-llama/Meta-Llama-3-8B", ("llama-3-8b", "")),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", ("llama-3.3-70b", "fp8")),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", ("qwen2.5-7b", "awq")),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", ("qwen3-30b-a3b", "fp8")),
        ("google/gemma-3-12b-it", ("gemma-3-12b", "")),
        ("mistralai/Mistral-7B-Instruct-v0.3", ("mistral-7b-v0.3", "")),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", ("mixtral-8x7b", "")),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", ("deepseek-v2-lite", "")),
        ("openai/gpt-oss-120b", ("gpt-oss-120b", "")),
        ("Qwen/Qwen3-8B-GGUF", ("qwen3-8b", "")),
        ("/models/Qwen3-8B-Q4_K_M.gguf", ("qwen3-8b", "q4_k_m")),
        ("unsloth/Qwen3-30B-A3B-UD-Q4_K_XL-00001-of-00002.gguf", ("qwen3-30b-a3b", "q4_k_m")),
        ("gpt-oss-20b-mxfp4.gguf", ("gpt-oss-20b", "mxfp4")),
        ("unsloth/gemma-3-12b-it-bnb-4bit", ("gemma-3-12b", "bitsandbytes")),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", ("llama-3.3-70b", "")),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", ("qwen2.5-14b", "")),
        ("Qwen/QwQ-32B-AWQ", ("qwen2.5-32b", "awq")),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", ("qwen2.5-32b", "")),
        ("Qwen/Qwen2-72B-Instruct-GPTQ-Int4", ("qwen2.5-72b", "gptq")),
    ],
)
def test_names_of_the_hub(repository, found):
    assert preset_of(repository)[:2] == found


# Untied, unlike Qwen2.5-1.5B, or of nobody.
@pytest.mark.parametrize("repository", ["deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "org/nobody-knows-it"])
def test_other_names_are_no_preset(repository):
    assert preset_of(repository) is None


@pytest.mark.parametrize(
    ("repository", "settings"),
    [
        ("Qwen/Qwen2.5-7B", {}),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", {"max_position_embeddings": 32_768}),
        ("Qwen/Qwen2-7B-Instruct", {"max_position_embeddings": 32_768}),
        ("Qwen/Qwen2.5-7B-Instruct-1M", {"max_position_embeddings": 1_010_000}),
        ("Qwen/Qwen2.5-Coder-7B", {"max_position_embeddings": 32_768}),
        ("Qwen/Qwen2.5-Math-7B", {"max_position_embeddings": 4096}),
        ("Qwen/QwQ-32B", {}),
        ("Qwen/QwQ-32B-Preview", {"max_position_embeddings": 32_768}),
        ("Qwen/Qwen3-4B-Thinking-2507-FP8", {"max_position_embeddings": 262_144}),
        ("mistralai/Mistral-7B-Instruct-v0.1", {}),
        ("mistralai/Mistral-7B-Instruct-v0.2", {"sliding_window": None}),
    ],
)
def test_a_name_states_what_its_config_has_otherwise(repository, settings):
    """By the model cards, and litgpt's config.py."""
    assert preset_of(repository).settings == settings
