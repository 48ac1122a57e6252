"""``tallystick serve``, by options and by a pasted command."""

import io
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
    out = run("serve", "--device", "h100", "--", "vllm", "serve", "qwen3-8b", "--hf-overrides", "{}")
    assert "note: not modelled: --hf-overrides" in out


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
        (("serve", "gpt2", "--device", "h100", "--free-memory", "much"), "--free-memory is 'much', expected a size"),
        (("serve", "gpt2", "--device", "h100", "--from", "x"), "--from names the command: give no other"),
        (("serve", "--device", "h100", "--from", "no-such-file"), "'no-such-file' cannot be read: No such file"),
        (("serve", "org/nobody-knows-it", "--device", "h100"), "org/nobody-knows-it"),
    ],
)
def test_bad_input(run, monkeypatch, words, said):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert said in run(*words, code=2)


def test_a_command_is_read_from_a_file_or_stdin(run, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    script = tmp_path / "serve.sh"
    script.write_text("MODEL=Qwen/Qwen3-8B\nvllm serve $MODEL \\\n  -tp 2 &\n")
    words = ("serve", "--device", "h100", "--format", "json")
    read = json.loads(run(*words, "--from", str(script)))
    assert read["options"]["tp"] == 2
    monkeypatch.setattr("sys.stdin", io.StringIO(script.read_text()))
    assert json.loads(run(*words, "--from", "-"))["lines"] == read["lines"]
    assert json.loads(run(*words, "--", "vllm serve Qwen/Qwen3-8B -tp 2"))["lines"] == read["lines"]


def test_a_draft_that_is_not_fetched(run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    words = ("serve", "--device", "h100", "--", "vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct")
    config = '{"model": "%s", "num_speculative_tokens": 3}'
    known = run(*words, "--speculative-config", config % "meta-llama/Llama-3.2-1B-Instruct")
    assert "counted as the preset llama-3.2-1b" in known
    other = run(*words, "--speculative-config", config % "org/nobody-knows-it")
    assert "not modelled: the draft model org/nobody-knows-it" in other


def test_a_file_of_llama_cpp_that_is_not_here(run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = run("serve", "--device", "24GB", "--", "llama-server", "-m", "Qwen3-8B-Q4_K_M.gguf", "-c", "4096")
    assert "counted as the preset qwen3-8b in q4_k_m" in out


def test_memory_in_use_is_said(run):
    words = ("serve", "qwen3-8b", "--engine", "sglang", "--device", "h100", "--format", "json")
    assert json.loads(run(*words, "--free-memory", "60GiB"))["options"]["free_memory"] == 60 * 2**30


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "the preset qwen2.5-7b, max_position_embeddings = 32,768"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "sliding_window = none"),
    ],
)
def test_what_a_name_states_otherwise_than_its_preset_is_said(monkeypatch, capsys, name, note):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["serve", name, "--engine", "vllm", "--device", "a100-80gb"]) == 0
    assert note in " ".join(capsys.readouterr().out.split())
