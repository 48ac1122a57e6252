"""Engines' plans of models with vision towers that transformers builds."""

from __future__ import annotations

import pytest

import tallystick

pytestmark = pytest.mark.usefixtures("preloaded_module")

GIB = 2**30
# The published config of llava-hf/llava-v1.6-mistral-7b-hf, as far as it counts.
LLAVA = {
    "architectures": ["LlavaNextForConditionalGeneration"],
    "model_type": "llava_next",
    "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
    "torch_dtype": "float16",
    "text_config": {
        "model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": None,
        "max_position_embeddings": 32768, "vocab_size": 32064,
    },
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000,
    },
}  # fmt: skip
# Qwen2.5-VL-7B's, with the text's keys at the top.
QWEN = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "torch_dtype": "bfloat16",
    "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28,
    "num_key_value_heads": 4, "max_position_embeddings": 128000, "vocab_size": 152064, "tie_word_embeddings": False,
    "use_sliding_window": False, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def llava():
    return tallystick.count(LLAVA)


def test_the_plan_of_llava_is_the_log(llava):
    """The log is the stored file 34680831065."""
    answer = tallystick.serve(
        llava,
        engine="vllm",
        device="79.19GiB",
        engine_version="0.10.2",
        max_model_len=4096,
        max_num_batched_tokens=16_384,
    )
    assert answer.weights_bytes / GIB == pytest.approx(14.0786, rel=0.01)
    assert answer.activations_bytes / GIB == pytest.approx(1.97, rel=0.01)
    assert answer.kv_cache_bytes / GIB == pytest.approx(55.15, rel=0.01)
    assert answer.kv_cache_tokens == pytest.approx(451_744, rel=0.01)
    assert answer.max_concurrency == pytest.approx(110.29, rel=0.01)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_language_model_says_what_a_token_takes(llava, engine):
    answer = tallystick.serve(llava, engine=engine, device="h100")
    assert answer.kv_cache_bytes_per_token == 32 * 2 * 8 * 128 * 2


def test_a_model_without_its_tower_is_smaller(llava):
    whole, alone = (
        tallystick.serve(llava, engine="vllm", device="h100", language_model_only=on) for on in (False, True)
    )
    seen = sum(
        entry.bytes * entry.copies for entry in llava.parameters if "vision" in entry.name or "multi" in entry.name
    )
    assert seen <= whole.weights_bytes - alone.weights_bytes < seen * 1.01


def test_the_keys_of_the_text_may_stand_at_the_top():
    answer = tallystick.serve(QWEN, engine="vllm", device="h100", tp=2)
    assert answer.starts
    assert answer.kv_cache_bytes_per_token == 28 * 2 * 2 * 128 * 2


@pytest.mark.parametrize("quantization", ["awq", "gptq"])
def test_calibrated_formats_keep_the_tower(llava, quantization):
    whole, alone = (
        tallystick.serve(llava, engine="vllm", device="h100", quantization=quantization, language_model_only=on)
        for on in (False, True)
    )
    seen = sum(
        entry.bytes * entry.copies for entry in llava.parameters if "vision" in entry.name or "multi" in entry.name
    )
    assert seen <= whole.weights_bytes - alone.weights_bytes < seen * 1.01
