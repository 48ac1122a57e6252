"""``tallystick serve``, by options and by a pasted command."""

import json

import pytest

from tallystick.cli.main import main


@pytest.fixture
def run(capsys):
    def call(*words, code=0):
        assert main(words) == code
        captured = capsys.readouterr()
        assert code != 2 or captured.out == ""
        return captured.err if code == 2 else captured.out

    return call


ASKED = ("serve", "llama-3.1-8b", "--device", "h100", "--max-model-len", "8k")


def test_the_table_has_the_lines_the_parts_and_advice(run):
    out = run(*ASKED, "--input", "1k", "--output", "1k")
    assert "llama-3.1-8b: vllm 0.19 starts on h100" in out
    assert "  Model loading took 14.99 GiB memory\n" in out
    assert "requests of 2,048 tokens at the same time" in out
    assert "--kv-cache-dtype fp8: " in out
    assert " = 16,094,076,928 B" not in out
    assert " = 16,094,076,928 B: weights and rotary tables" in run(*ASKED, "--explain")


def test_json_has_the_keys_that_stay(run):
    answer = json.loads(run(*ASKED, "--format", "json"))
    for key in (
        "weights_bytes", "activations_bytes", "kv_cache_bytes", "kv_cache_bytes_per_token", "kv_cache_tokens",
        "max_concurrency", "starts", "limits", "lines", "notes",
    ):  # fmt: skip
        assert key in answer
    assert answer["options"]["max_model_len"] == 8192
    assert answer["starts"] is True


@pytest.mark.parametrize("style", ["csv", "markdown", "html"])
def test_other_formats(run, style):
    assert "weights" in run(*ASKED, "--format", style)


def test_a_pasted_command_is_the_same_as_its_options(run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --port 80"
    pasted = json.loads(run("serve", "--device", "h100", "--format", "json", "--", *line.split()))
    by_options = json.loads(run(*ASKED, "--format", "json"))
    assert pasted["lines"] == by_options["lines"]
    assert any("counted as the preset llama-3.1-8b" in note for note in pasted["notes"])


def test_a_name_that_states_its_quantisation(run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = run("serve", "--device", "l4", "--", "vllm", "serve", "Qwen/Qwen3-8B-FP8", "--max-model-len", "8K")
    assert "counted as the preset qwen3-8b in fp8" in out


def test_options_before_the_pasted_command_count(run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    words = (
        "serve",
        "--device",
        "h100",
        "--tp",
        "2",
        "--format",
        "json",
        "--",
        "vllm",
        "serve",
        "Qwen/Qwen3-8B",
        "-tp",
        "4",
    )
    assert json.loads(run(*words))["options"]["tp"] == 2


def test_what_is_not_modelled_is_said(run):
    out = run("serve", "--device", "h100", "--", "vllm", "serve", "qwen3-8b", "--enable-lora")
    assert "note: not modelled: --enable-lora" in out


def test_the_exit_code_is_1_if_it_does_not_start(run):
    words = ("serve", "llama-3-70b", "--device", "h100")
    assert "does not start" in run(*words, code=1)
    assert "does not start" in run(*words, "--no-exit-code")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "gpt2"), "name the device with --device"),
        (("serve", "--device", "h100"), "name a model, or paste an engine's command behind --"),
        (("serve", "gpt2", "--device", "h100", "--engine", "tgi"), "engine is 'tgi', expected one of vllm"),
        (("serve", "--device", "h100", "--", "ollama", "run", "x"), "does not start an engine"),
        (("serve", "--engine", "sglang", "--device", "h100", "--", "vllm", "serve", "gpt2"), "the command is vllm's"),
        (("serve", "gpt2", "--device", "h100", "--max-model-len", "x"), "is not a sequence length"),
        (("serve", "org/nobody-knows-it", "--device", "h100"), "org/nobody-knows-it"),
    ],
)
def test_bad_input(run, monkeypatch, words, said):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert said in run(*words, code=2)
