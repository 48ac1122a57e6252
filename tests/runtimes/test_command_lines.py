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
        ("llama-server -m qwen3.gguf -ngl auto", {"gpu_layers": "auto"}),
        (
            "./llama-cli -m qwen3.gguf -ctk q8_0 -fa on",
            {"max_num_seqs": 1, "kv_cache_dtype": "q8_0", "value_cache_dtype": "f16", "enforce_eager": False},
        ),
        ("llama-server -m qwen3.gguf -ctk q8_0 -ctv q8_0", {"kv_cache_dtype": "q8_0"}),
        ("llama-server -m qwen3.gguf -ctv q4_0", {"kv_cache_dtype": "f16", "value_cache_dtype": "q4_0"}),
        ("llama-server -m qwen3.gguf -ts 3,1 -nkvo", {"tensor_split": "3,1", "kv_offload": False}),
        ("llama-server -m qwen3.gguf -dev CUDA0,CUDA1 -kvu", {"pp": 2, "kv_unified": True}),
        ("llama-server -m qwen3.gguf -sm none -ts 1,1 --mmproj tower.gguf", {"mmproj": True}),
        ("llama-server -m qwen3.gguf -ot blk.[0-9].ffn=CPU", {"override_tensor": "blk.[0-9].ffn=CPU"}),
        ("./main -m qwen3.gguf -c 4096 -p hello", {"max_num_seqs": 1, "max_model_len": 4096}),
        ("server.exe -m qwen3.gguf -c 4096", {"max_model_len": 4096}),
        (r"'C:\llama b1\llama-server.exe' -m qwen3.gguf -c 4096", {"max_model_len": 4096}),
        ("llama serve -m qwen3.gguf -c 4096", {"max_model_len": 4096}),
        (
            "llama-server --model qwen3.gguf --flash-attn off --swa-full -ub 1024 -np 2",
            {"enforce_eager": True, "hybrid_kv_cache": False, "max_num_batched_tokens": 1024, "max_num_seqs": 2},
        ),
    ],
)
def test_a_pasted_line_of_llama_cpp(line, options):
    found = pasted(shlex.split(line))
    assert (found.engine, found.source, found.options) == ("llama.cpp", "qwen3.gguf", options)


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("image=10", {}),
        ('{"image": 0, "video": 1}', {}),
        ('{"image": 0}', {}),
        ('{"image": 0, "video": 0}', {"language_model_only": True}),
        ("image=0,video=0", {"language_model_only": True}),
    ],
)
def test_a_prompt_without_images_is_of_the_language_model_alone(value, options):
    assert pasted(["vllm", "serve", "org/name", "--limit-mm-per-prompt", value]).options == options


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (
            "vllm serve org/name --speculative-config.method mtp --speculative-config.num_speculative_tokens=2",
            {"speculative": "mtp", "draft_tokens": 2},
        ),
        (
            "vllm serve org/name --limit-mm-per-prompt.image 0 --limit-mm-per-prompt.video 0",
            {"language_model_only": True},
        ),
        ("vllm serve org/name --limit-mm-per-prompt.image 0", {}),
    ],
)
def test_json_is_also_given_key_by_key(line, options):
    assert pasted(line.split()).options == options


@pytest.mark.parametrize(
    "line",
    [
        'vllm serve org/name --max-model-len 131072 --rope-scaling \'{"rope_type": "yarn", "factor": 4.0}\'',
        'vllm serve org/name --max-model-len 131072 --hf-overrides \'{"rope_scaling": {"factor": 4.0}}\'',
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve org/name --max-model-len 131072",
    ],
)
def test_what_allows_longer_requests_than_the_config(line):
    assert pasted([line]).options == {"max_model_len": 131072, "allow_long_max_model_len": True}


@pytest.mark.parametrize(
    "line",
    [
        "vllm bench throughput --model org/name -tp 4",
        "vllm bench latency --model org/name -tp 4",
        "vllm run-batch -i in.jsonl -o out.jsonl --model org/name -tp 4",
        "python3 -m vllm.entrypoints.cli.main serve org/name -tp 4",
    ],
)
def test_commands_that_start_the_engine_without_a_server(line):
    found = pasted(line.split())
    assert (found.source, found.options) == ("org/name", {"tp": 4})


LOG = """\
(APIServer pid=1) INFO 10-23 15:10:10 [api_server.py:1896] vLLM API server version 0.10.2
(APIServer pid=1) INFO 10-23 15:10:10 [utils.py:328] non-default args: {'model_tag': 'org/name', 'model': 'org/name', \
'max_model_len': 4096, 'enable_prefix_caching': False, 'enforce_eager': True, 'limit_mm_per_prompt': {'image': 0, 'video': 0}}
"""


def test_a_log_says_the_options_that_were_given():
    found = pasted([LOG])
    assert (found.engine, found.source) == ("vllm", "org/name")
    assert found.options == {
        "max_model_len": 4096, "enable_prefix_caching": False, "enforce_eager": True, "language_model_only": True,
        "engine_version": "0.10.2",
    }  # fmt: skip


@pytest.mark.parametrize("given", ["{'model': <Unknown>}", "{'max_model_len': 1}", "{"])
def test_a_log_that_cannot_be_read_names_what_is_missing(given):
    with pytest.raises(BadInput, match=r"does not start an engine|names no model"):
        pasted([f"INFO non-default args: {given}"])


def test_options_of_towers_and_states():
    line = "vllm serve org/name --enable-prefix-caching --mamba_ssm_cache_dtype float32 --skip-mm-profiling"
    assert pasted(line.split()).options == {
        "enable_prefix_caching": True, "mamba_ssm_cache_dtype": "float32", "skip_mm_profiling": True,
    }  # fmt: skip
    assert pasted(["vllm", "serve", "org/name", "--no-enable-prefix-caching"]).options == {
        "enable_prefix_caching": False
    }


def test_a_line_of_windows():
    text = r"C:\llama\llama-server.exe -m C:\models\Qwen3-8B-Q4_K_M.gguf -c 8192"
    found = pasted([text])
    assert (found.engine, found.source) == ("llama.cpp", r"C:\models\Qwen3-8B-Q4_K_M.gguf")
    assert found.options == {"max_model_len": 8192}


def test_a_pasted_line_of_sglang():
    line = (
        "python3 -m sglang.launch_server --model-path org/name --tp 4 --mem-fraction-static 0.93 --context-length 8192"
    )
    found = pasted(shlex.split(line))
    assert (found.engine, found.source) == ("sglang", "org/name")
    assert found.options == {"tp": 4, "gpu_memory_utilization": 0.93, "max_model_len": 8192}
    replicas = ["sglang", "serve", "--model-path", "org/name", "--tp", "8", "--dp", "2"]
    assert pasted(replicas).options == {"tp": 8}  # two servers of eight devices
    assert pasted([*replicas, "--enable-dp-attention"]).options == {"tp": 8, "dp": 2}


def test_what_is_not_modelled_is_named():
    found = pasted(["vllm", "serve", "org/name", "-O", "3", "--kv-transfer-config", "{}", "-O", "2"])
    assert found.unmodelled == ("-O", "--kv-transfer-config")
    found = pasted(["llama-server", "-m", "a.gguf", "--lora", "b.gguf", "-sm", "row"])
    assert found.unmodelled == ("--lora", "-sm row")


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


COMPOSE = """\
services:
  model:
    image: vllm/vllm-openai:v0.19.0
    environment:
      - HF_TOKEN=${HF_TOKEN}
    ports: ["8000:8000"]
    command:
      - --model
      - org/name
      - --max-model-len=16384  # enough
      - "--tensor-parallel-size 2"
    deploy:
      resources: {}
"""
FOLDED = """\
services:
  vllm:
    command: >
      --model org/name --max-num-seqs 16
      --enforce-eager
    image: vllm/vllm-openai:latest
    ipc: host
"""
URL = """\
services:
  llama-cpp:
    image: ghcr.io/ggml-org/llama.cpp:server-cuda
    container_name: llama-cpp
    environment:
      LLAMA_ARG_MODEL_URL: hub/org/name-Q4_K_M.gguf # a comment
      LLAMA_ARG_N_GPU_LAYERS: 99
"""
LLAMA = """\
services:
  server:
    image: ghcr.io/ggml-org/llama.cpp:server-cuda
    environment:
      LLAMA_ARG_HF_REPO: "org/name-GGUF:Q4_K_M"
      LLAMA_ARG_CTX_SIZE: 16384
    command: -np 2
"""
SCRIPT = """\
#!/bin/bash
# start it
export MODEL=org/name
PORT=8000
CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server \\
    --model-path $MODEL --tp ${TP:-2} \\
    --port $PORT --mem-fraction-static 0.9 2>&1 | tee log.txt
"""
MANIFEST = """\
containers:
- name: vllm
  image: vllm/vllm-openai:latest
  command: ["/bin/sh", "-c"]
  args: ["vllm serve org/name --trust-remote-code --enable-chunked-prefill --max_num_batched_tokens 1024"]
  env:
  - name: HF_TOKEN
    value: x
"""


@pytest.mark.parametrize(
    ("text", "engine", "source", "options"),
    [
        (COMPOSE, "vllm", "org/name", {"max_model_len": 16384, "tp": 2, "engine_version": "0.19.0"}),
        (FOLDED, "vllm", "org/name", {"max_num_seqs": 16, "enforce_eager": True}),
        (LLAMA, "llama.cpp", "org/name-GGUF", {"quantization": "q4_k_m", "max_model_len": 16384, "max_num_seqs": 2}),
        (URL, "llama.cpp", "hub/org/name-Q4_K_M.gguf", {"gpu_layers": 99}),
        (SCRIPT, "sglang", "org/name", {"tp": 2, "gpu_memory_utilization": 0.9}),
        (MANIFEST, "vllm", "org/name", {"max_num_batched_tokens": 1024}),
        (
            "docker run --gpus all -v ~/.cache:/root -p 8000:8000 --ipc=host vllm/vllm-openai:latest org/name --dtype half",
            "vllm",
            "org/name",
            {"dtype": "half"},
        ),
        (
            "docker run --rm --env A=b lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path org/name --tp 8",
            "sglang",
            "org/name",
            {"tp": 8},
        ),
        (
            "docker run ghcr.io/ggml-org/llama.cpp:full-cuda --server -m /models/a.gguf -c 0 -ngl 99",
            "llama.cpp",
            "/models/a.gguf",
            {"gpu_layers": 99},
        ),
        (
            "docker run --gpus '\"device=2\"' -e HF_TOKEN=x vllm/vllm-openai:v0.31.0-ubuntu2404 --model org/name",
            "vllm",
            "org/name",
            {"engine_version": "0.31.0"},
        ),
        (
            "docker run lmsysorg/sglang:v0.5.6.post1-cu129 python3 -m sglang.launch_server --model-path org/name",
            "sglang",
            "org/name",
            {"engine_version": "0.5.6.post1"},
        ),
        ("$ vllm serve org/name `\n  -tp 2", "vllm", "org/name", {"tp": 2}),  # PowerShell
        ("nohup vllm serve org/name > log 2>&1 &", "vllm", "org/name", {}),
    ],
)
def test_a_text_that_holds_a_command(text, engine, source, options):
    found = pasted([text])
    assert (found.engine, found.source, found.options) == (engine, source, options)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("vllm serve --trust-remote-code org/name --port 80", {}),
        ("vllm serve org/name --max-model-len auto --max-num-seqs 8", {"max_num_seqs": 8}),
        ("vllm serve org/name --enable-lora --max-lora-rank 32", {"max_loras": 1, "max_lora_rank": 32}),
        ("vllm serve org/name --max-loras 4", {}),  # without --enable-lora they cost nothing
        (
            """vllm serve org/name -sc '{"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}'""",
            {"speculative": "eagle3", "draft_tokens": 3},
        ),
        (
            """vllm serve org/name --speculative-config '{"method": "deepseek_mtp", "num_speculative_tokens": 1}'""",
            {"speculative": "mtp", "draft_tokens": 1},
        ),
        (
            """vllm serve org/name --speculative_config '{"model": "org/draft", "num_speculative_tokens": 5}'""",
            {"speculative": "draft_model", "draft": "org/draft", "draft_tokens": 5},
        ),
        (
            "vllm serve org/name --speculative-model '[ngram]' --num-gpu-blocks-override 64",
            {"num_gpu_blocks_override": 64},
        ),
        (
            "python -m sglang.launch_server --model org/name --speculative-algorithm EAGLE --speculative-num-draft-tokens 4",
            {"speculative": "mtp", "draft_tokens": 4},
        ),
        (
            "python -m sglang.launch_server --model org/name --speculative-algo EAGLE --speculative-draft org/EAGLE-head",
            {"speculative": "eagle"},
        ),
        (
            "python -m sglang.launch_server --model org/name --speculative-algorithm NEXTN --chunked-prefill-size -1",
            {"speculative": "mtp"},
        ),
        (
            "python -m sglang.launch_server --model org/name --lora-paths a=org/a b=org/b --max-lora-rank 8",
            {"max_loras": 8, "max_lora_rank": 8},
        ),
        ("llama-server -hf org/name:Q8_0 -ngl all -fa --jinja", {"quantization": "q8_0", "enforce_eager": False}),
        ("llama-server -hf org/name --n-cpu-moe 12 -ot 'exps=CPU'", {"cpu_moe_layers": 10_000}),
        ("llama-server.exe -hf org/name -fa 1 --cpu-moe", {"enforce_eager": False, "cpu_moe_layers": 10_000}),
    ],
)
def test_options_that_cost_memory(line, options):
    found = pasted(shlex.split(line))
    assert found.source in ("org/name", "org/name-GGUF")
    assert found.options == options
    assert found.unmodelled == ()


def test_what_a_text_does_not_set_is_said():
    text = (
        'local cmd="${PREFIX} vllm serve org/name ${DTYPE} --tensor-parallel-size ${TP} --max-num-seqs 8 > ${LOG} 2>&1"'
    )
    found = pasted([text])
    assert (found.source, found.options) == ("org/name", {"max_num_seqs": 8})
    assert found.unmodelled == ("--tensor-parallel-size ${TP}",)
    with pytest.raises(BadInput, match="the command's model is '\\$MODEL': set it before, as MODEL=org/name"):
        pasted(["vllm", "serve", "$MODEL"])


def test_a_mix_of_unsloth_is_counted_as_one_of_llama_cpp():
    found = pasted(["llama-server", "-hf", "org/name-GGUF:UD-Q4_K_XL"])
    assert found.options == {"quantization": "q4_k_m"}
    assert found.unmodelled == ("ud-q4_k_xl, counted as q4_k_m",)


def test_a_speculation_that_is_not_known_is_named():
    line = """vllm serve org/name --speculative-config '{"method": "medusa", "num_speculative_tokens": 5}'"""
    assert pasted(shlex.split(line)).unmodelled == ("speculative decoding by medusa",)
