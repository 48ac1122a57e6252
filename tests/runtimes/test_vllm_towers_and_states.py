"""vLLM's recurrent states, vision towers and links between cards: numbers of public logs."""

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.serve.ranks import ranks_of
from tallystick.runtimes.engines import Rank, Settings
from tallystick.runtimes.vllm import encoder
from tallystick.runtimes.vllm.cuda_graphs import captured
from tallystick.runtimes.vllm.states import state_bytes

GIB = 2**30
DRAFTED = {"speculative": "mtp", "enable_prefix_caching": True}


def planned(source, device="h200", **options):
    return tallystick.serve(source, engine="vllm", device=device, **options)


@pytest.mark.parametrize(
    ("source", "options", "block"),
    [
        ("qwen3-next-80b-a3b", {"tp": 2}, 544),  # stored file 7292846353: a state in 16 bits
        ("qwen3-next-80b-a3b", {"tp": 2, "mamba_ssm_cache_dtype": "float32"}, 1056),
        ("qwen3.5-27b", {"kv_cache_dtype": "fp8"}, 1568),  # 61544841280: in float32
        ("qwen3.5-35b-a3b", {"kv_cache_dtype": "fp8"}, 2096),  # 52066611745
        ("qwen3.5-35b-a3b", {"kv_cache_dtype": "fp8", "draft_tokens": 2, **DRAFTED}, 2128),  # 56753445407
        ("qwen3.5-35b-a3b", {"draft_tokens": 3, **DRAFTED}, 1072),  # 56681168668
        ("nemotron-3-nano-30b-a3b", {"kv_cache_dtype": "fp8"}, 4176),  # 51961570119
    ],
)
def test_the_attention_block_grows_to_the_state_of_the_log(source, options, block):
    answer = planned(source, **options)
    assert answer.options["block_size"] == block
    assert f"Setting attention block size to {block} tokens" in answer.lines


def test_prefix_caching_keeps_one_state_more():
    without, cached = (planned("qwen3.5-27b", enable_prefix_caching=on) for on in (False, True))
    assert without.kv_cache_bytes == cached.kv_cache_bytes
    pages = -(-262_144 // 784)
    assert without.max_concurrency / cached.max_concurrency == pytest.approx((pages + 3 * 2) / (pages + 3))


def test_an_unknown_dtype_of_states_is_refused():
    with pytest.raises(BadInput, match="mamba_ssm_cache_dtype is 'fp4', expected one of auto, float32"):
        planned("qwen3.5-27b", mamba_ssm_cache_dtype="fp4")


def rank(architecture, **sizes):
    """Return a device of a model of hidden size 4096."""
    return Rank(
        weights=0, attending=(), recurring=(), kernel=4, hidden=4096, inner=0, gated=True, vocabulary=0,
        architecture=architecture, positions=None, stretch=1, experts=None, width=2, vision=tuple(sizes.items()),
    )  # fmt: skip


QWEN = {"hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16, "temporal_patch_size": 2, "in_channels": 3}


@pytest.mark.parametrize(
    ("architecture", "sizes", "batched", "images"),
    [
        ("qwen3_5", QWEN, 8192, 1),  # stored file 51781852921
        ("qwen3_5_moe", QWEN, 32_768, 2),  # 56681168668
        ("qwen3_5", QWEN, 65_536, 4),  # 61544841280
        ("mistral3", {"hidden_size": 1024, "intermediate_size": 4096, "spatial_merge_size": 2}, 8192, 2),  # 69725896812
        ("gemma3", {"hidden_size": 1152, "intermediate_size": 4304}, 8192, 32),
    ],
)
def test_as_many_images_as_the_log_says_are_profiled(architecture, sizes, batched, images):
    assert encoder.profiled(rank(architecture, **sizes), batched, 1).images == images


def test_the_tower_reads_pixels_and_keeps_them_while_the_text_runs():
    found = encoder.profiled(rank("qwen3_5", **QWEN), 8192, 1)
    patches, pixels = 65_536, 3 * 2 * 16 * 16
    assert found.peak == patches * (pixels + 2 * 4304 + 3.5 * 1152) * 2
    assert found.kept == patches * pixels * 2 + 16_384 * 4096 * 2
    shared = encoder.profiled(rank("qwen3_5", **QWEN), 8192, 2)  # two ranks divide the tower's MLP
    assert found.peak - shared.peak == patches * 4304 * 2


def test_types_without_a_rule_and_models_without_a_tower_profile_no_image():
    assert encoder.profiled(rank("llama4", **QWEN), 8192, 1) is None
    assert encoder.profiled(rank("qwen3_5"), 8192, 1) is None


def test_the_language_model_alone_has_no_tower():
    whole, skipped, alone = (
        planned("qwen3.5-27b", **{option: True} if option else {})
        for option in ("", "skip_mm_profiling", "language_model_only")
    )
    tower = sum(
        entry.bytes * entry.copies for entry in tallystick.count("qwen3.5-27b").parameters if "visual" in entry.name
    )
    assert whole.weights_bytes == skipped.weights_bytes == alone.weights_bytes + tower
    assert whole.activations_bytes > skipped.activations_bytes == alone.activations_bytes
    assert any("images" in note for note in planned("llama-4-scout").notes)
    assert not any("images" in note for answer in (whole, skipped, alone) for note in answer.notes)


def test_longer_requests_than_the_config_says_are_refused_unless_allowed():
    refused, allowed = (planned("qwen3-8b", max_model_len=131_072, allow_long_max_model_len=on) for on in (False, True))
    assert not refused.starts
    assert allowed.starts


def test_ranks_without_nvlink_add_no_more_than_one():
    one, two = (planned("qwen3-8b", "l40s", tp=tp).other_bytes for tp in (1, 2))
    assert one == two
    assert planned("qwen3-8b", "h100", tp=2).other_bytes > one


@pytest.mark.parametrize(
    ("requests", "gigabytes"),
    [(128, 0.37), (512, 0.76), (16, 0.08)],  # stored files 67144197265, 63390294774, 69428649752
)
def test_the_estimate_of_cuda_graphs(requests, gigabytes):
    assert captured(requests).estimate / GIB == pytest.approx(gigabytes, abs=0.05)


def test_from_0_21_on_the_estimate_is_subtracted():
    before, after = (planned("qwen3-8b", engine_version=version) for version in ("0.20", "0.21"))
    assert after.other_bytes - before.other_bytes == captured(1024).estimate
    assert planned("qwen3-8b", engine_version="0.21", enforce_eager=True).other_bytes == before.other_bytes


def test_the_first_releases_of_v0_subtract_the_cuda_context():
    old, new = (planned("llama-3.1-8b", engine_version=version).other_bytes for version in ("0.6.4", "0.6.5"))
    assert old - new == 225 * 2**20


LFM2 = {
    "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "vocab_size": 65536,
    "num_key_value_heads": 8, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "conv_L_cache": 3, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_short_convolutions_share_pages_with_attention():
    """LFM2.5-1.2B in the stored file 64285867313: pages padded by 300%, two layers of padding."""
    ledger = tallystick.count(LFM2)
    (rank,) = ranks_of(ledger, None, "bfloat16", 1, 1, padded=64)
    state = state_bytes(rank.recurring[0].keeps, rank, Settings())
    assert 16 * 2 * 8 * 64 * 2 / state == 4
    answer = planned(ledger, max_model_len=2048, num_gpu_blocks_override=40_738)
    assert answer.options["block_size"] == 16
    assert (answer.kv_cache_tokens, round(answer.max_concurrency, 2)) == (217_264, 313.37)
