"""Engines' command lines as people paste them."""

import shlex

import pytest

from tallystick import BadInput
from tallystick.runtimes.command_lines import pasted


@pytest.mark.parametrize(
    ("line", "source", "options"),
    [
        ("vllm serve org/name", "org/name", {}),
        ("vllm serve org/name -tp 2 -q fp8", "org/name", {"tp": 2, "quantization": "fp8"}),
        ("vllm serve org/name --tensor_parallel_size=4", "org/name", {"tp": 4}),
        ("vllm serve --max-model-len 32K --model org/name", "org/name", {"max_model_len": 32768}),
        ("vllm serve org/name --max-model-len 32k", "org/name", {"max_model_len": 32000}),
        ("vllm serve org/name --max-model-len 1.5M", "org/name", {"max_model_len": 1572864}),
        (
            "CUDA_VISIBLE_DEVICES=0,1 /opt/venv/bin/vllm serve org/name --host 0.0.0.0 --enforce-eager --port 8000",
            "org/name",
            {"enforce_eager": True},
        ),
        (
            "python3 -m vllm.entrypoints.openai.api_server --served-model-name mine --model org/name --dtype half",
            "org/name",
            {"dtype": "half"},
        ),
        (
            "vllm serve org/name --no-disable-hybrid-kv-cache-manager --gpu-memory-utilization .95",
            "org/name",
            {"hybrid_kv_cache": True, "gpu_memory_utilization": 0.95},
        ),
    ],
)
def test_a_pasted_line(line, source, options):
    found = pasted(shlex.split(line))
    assert (found.engine, found.source, found.options) == ("vllm", source, options)
    assert found.unmodelled == ()


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("llama-server -m qwen3.gguf -c 8192 -ngl 99", {"max_model_len": 8192, "gpu_layers": 99}),
        ("./llama-cli -m qwen3.gguf -ctk q8_0 -fa on", {"kv_cache_dtype": "q8_0", "enforce_eager": False}),
        (
            "llama-server --model qwen3.gguf --flash-attn off --swa-full -ub 1024 -np 2",
            {"enforce_eager": True, "hybrid_kv_cache": False, "max_num_batched_tokens": 1024, "max_num_seqs": 2},
        ),
    ],
)
def test_a_pasted_line_of_llama_cpp(line, options):
    found = pasted(shlex.split(line))
    assert (found.engine, found.source, found.options) == ("llama.cpp", "qwen3.gguf", options)


def test_a_pasted_line_of_sglang():
    line = (
        "python3 -m sglang.launch_server --model-path org/name --tp 4 --mem-fraction-static 0.93 --context-length 8192"
    )
    found = pasted(shlex.split(line))
    assert (found.engine, found.source) == ("sglang", "org/name")
    assert found.options == {"tp": 4, "gpu_memory_utilization": 0.93, "max_model_len": 8192}
    assert pasted(["sglang", "serve", "--model-path", "org/name", "--dp", "2"]).unmodelled == ("--dp",)


def test_what_is_not_modelled_is_named():
    found = pasted(["vllm", "serve", "org/name", "--speculative-config", '{"model": "m"}', "--enable-lora"])
    assert found.unmodelled == ("--speculative-config", "--enable-lora")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ollama run llama3", "'ollama run llama3' does not start an engine; known: vllm serve"),
        ("vllm serve --port 8000", "the vllm command names no model"),
        ("vllm serve org/name --max-model-len", "--max-model-len has no value"),
        ("vllm serve org/name --max-model-len long", "--max-model-len is 'long', expected a number such as 32768"),
        ("vllm serve org/name -tp two", "-tp is 'two', expected a whole number"),
        ("llama-server -m a.gguf -fa maybe", "-fa is 'maybe', expected on, off, auto"),
        ("vllm serve org/name --gpu-memory-utilization x", "expected a number"),
    ],
)
def test_a_line_that_says_too_little(line, said):
    with pytest.raises(BadInput) as refused:
        pasted(shlex.split(line))
    assert said in str(refused.value)
