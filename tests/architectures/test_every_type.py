"""What is told of native types is what transformers' own models do: what each caches, what those
out of the common compute.
"""

import pytest

import configs
import tallystick
from drawing import some
from measurements import measured
from native import NATIVE, small
from tallystick import architectures
from tallystick.answers.compute.compute import compute

# No cache is told of these, and why.
UNTOLD = {
    "blt": "how many patches there are is up to the bytes",
    "reformer": "it keeps hidden states, and hashes of them once a chunk is full",
    "xlnet": "it keeps hidden states, not keys and values",
}
# One is told, and transformers' differs.
OTHERWISE = {
    "openai-gpt": "transformers reads all tokens again for each new one",
    "recurrent_gemma": "its layers hold their states on their own: test_kv_cache.py looks there",
}
# Those whose products are more than those of plain attention and MLPs.
COUNTED = [
    "axk2", "deepseek_v32", "doge", "dots3_note_text", "falcon_mamba", "git", "glm_moe_dsa", "hy_v4", "inkling_text", "jamba",
    "jetmoe", "lfm2", "lfm2_moe", "lfm3", "mamba", "minimax_m3_vl_text", "olmo_hybrid", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next",
    "recurrent_gemma", "rwkv", "zamba",
]  # fmt: skip
# Short enough that the longer sequence does not fit in.
WINDOWS = {
    **dict.fromkeys(("sliding_window", "sliding_window_size", "window_size", "attention_chunk_size"), 7),
    "local_attention": 14,
    "use_sliding_window": True,
    "max_window_layers": 1,
    "is_decoder": True,
}
LENGTHS = ((1, 5), (3, 12))


def config_of(model_type):
    """A small config whose windows are narrow, if it has any, that makes a decoder which runs."""
    tested, family = configs.FAMILIES[model_type], architectures.find(model_type)
    values = {**small(model_type), **tested.runs, **tested.small_runs}
    narrow = {
        key: WINDOWS[end] for key in (*family.keys, *family.running) if (end := key.rpartition(".")[2]) in WINDOWS
    }
    return {**values, **narrow}


@pytest.mark.parametrize("model_type", some([name for name in NATIVE if name not in {*UNTOLD, *OTHERWISE}], 60))
def test_a_type_caches_what_transformers_does(model_type):
    values = config_of(model_type)
    ledger = tallystick.count(values)
    assert ledger.attending or ledger.recurring
    for (batch, sequence), held in zip(LENGTHS, measured("cache_memory:of_any_type", values, LENGTHS), strict=True):
        answer = tallystick.memory(ledger, dtype="bfloat16", batch=batch, sequence=sequence)
        assert answer.to_dict()["kv_cache_bytes"] == held


@pytest.mark.parametrize("model_type", UNTOLD)
def test_a_cache_that_is_not_told_is_said_to_be_missing(model_type):
    answer = tallystick.memory(small(model_type), sequence=5)
    assert answer.to_dict()["kv_cache_bytes"] == 0
    assert any(note.startswith("no KV cache is counted: ") for note in answer.notes)


@pytest.mark.parametrize("model_type", some(COUNTED, 10))
def test_a_type_takes_as_many_operations_as_torch_counts(model_type):
    """But for the gradient of a convolution's weight: torch counts it as if each channel read all
    channels.
    """
    values = config_of(model_type)
    ledger = tallystick.count(values)
    lengths = (*LENGTHS, (1, 70)) if ledger.recurring else LENGTHS  # 70: more than a chunk
    found = measured("operations:counted_but_for_convolutions", values, lengths)
    for (batch, sequence), (forward, backward) in zip(lengths, found, strict=True):
        answer = compute(ledger, batch=batch, sequence=sequence)
        assert answer.complete
        assert answer.forward_flops == forward
        assert answer.backward_flops == backward
