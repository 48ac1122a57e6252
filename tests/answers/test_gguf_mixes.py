"""GGUF file types as dtypes: the sizes that llama.cpp publishes."""

import json

import pytest

import tallystick
from tallystick.cli.main import main
from tallystick.errors import BadInput

# llama.cpp's CI, build 3953: bytes of Pythia-2.8B on the device and in the host's memory, MiB.
FUSED = {"q2_k": 993.89 + 40.30, "q3_k_m": 1354.83 + 52.77, "q4_k_m": 1632.95 + 69.08, "q8_0": 2684.57 + 130.49}


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_projection_has_a_format_of_its_own(name):
    weights = tallystick.memory("pythia-2.8b", dtype=name).weights_bytes
    assert weights / 2**20 == pytest.approx(FUSED[name], abs=0.02)


def test_the_names_that_llama_quantize_takes_for_another():
    assert (
        tallystick.memory("llama-3.1-8b", dtype="Q4_K").total_bytes
        == tallystick.memory("llama-3.1-8b", dtype="q4_k_m").total_bytes
    )


def test_a_tied_embedding_is_stored_as_a_head_is():
    lines = tallystick.memory("gpt2", dtype="q4_0").largest_layer
    assert lines is not None
    assert lines.bytes == 38_597_376 // 256 * 210  # q6_k: 256 elements in 210 bytes


def test_rows_that_are_no_whole_blocks_fall_back():
    config = {
        "model_type": "llama",
        "hidden_size": 96,
        "intermediate_size": 160,
        "num_hidden_layers": 1,
        "vocab_size": 10,
    }
    config |= {"num_attention_heads": 2, "head_dim": 48}
    form = tallystick.memory(config, dtype="q4_k_s").lines[0].what
    assert form == "weights in q5_0, q5_1, float32, q8_0"


def test_the_command_takes_several(capsys):
    assert main(["memory", "mixtral-8x7b", "--dtype", "q4_k_m,q8_0", "--format", "json"]) == 0
    small, large = json.loads(capsys.readouterr().out)["answers"]
    assert small == json.loads(json.dumps(tallystick.memory("mixtral-8x7b", dtype="q4_k_m").to_dict()))
    assert small["weights_bytes"] < large["weights_bytes"]


def test_what_cannot_be_is_one_line():
    with pytest.raises(BadInput, match="cannot be trained"):
        tallystick.memory("gpt2", mode="training", dtype="q4_k_m")
    with pytest.raises(BadInput, match="GGUF formats are mixed by layer, up to 10,000"):
        tallystick.memory(tallystick.count("gpt2", n_layer=10**9), dtype="q4_k_m")
